import { ENTRIES, OF_CALL, STREAM_FLAGS } from '@carpool/runtime/bridge'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { ANY_UNIT } from '../../test/support/any-text.ts'
import { ECHO, isolateWith, RAN, SAID, type Rig } from './support/isolate.ts'

const MIB = 1024 * 1024

t.test('a hundred entries run in order, as one batch', async (t) => {
  const { batch, messages, isolate } = await isolateWith(t)
  await batch(...Array.from({ length: 100 }, (_, index) => `globalThis.n = (globalThis.n ?? 0) + 1; n + ' ' + ${index}`))
  t.same(
    messages(),
    Array.from({ length: 100 }, (_, index) => [RAN, index, 0, 0, `${index + 1} ${index}`, '']),
  )
  t.equal(isolate.readEntryCpu(), 100)
  t.same(messages(), [])
})

t.test('all microtasks of an entry run before the next begins, and are on its bill', async (t) => {
  const { batch, messages, isolate } = await isolateWith(t)
  const spin = 'for (let i = 0; i < 3e7; i++);'
  await batch(
    '0',
    `(async () => { await null; await null; ${spin} say('microtask') })(); 1`,
    'Promise.resolve().then(() => say("another")); queue = []; 2',
  )
  t.same(
    messages().map(([op, number, , , text]) => (op === SAID ? text : number)),
    [0, 1, 'microtask', 2, 'another'],
  )
  t.equal(isolate.readEntryCpu(), 3)
  const [first, second, third] = isolate.entryCpuNs as unknown as [number, number, number]
  t.ok(second > 5 * first && second > 5 * third, `${first}, ${second}, ${third} ns`)
})

t.test('what an entry throws is lost, as is what it rejects, and those behind it run', async (t) => {
  const { batch, messages } = await isolateWith(t)
  await batch(
    'throw new Error("thrown")',
    'Promise.reject(Object.defineProperty({}, "message", { get() { ask(1) } })); 1',
    '(async () => { throw { get stack() { ask(2) } } })(); 2',
    'const dive = () => dive(); dive()',
    '4',
  )
  t.same(
    messages().map(([, number]) => number),
    [1, 2, 4],
  )
})

t.test('with an entry that never ends, what the others have said is there, and what each used', async (t) => {
  const { isolate, batch, nextTold, messages, entryCpuNs } = await isolateWith(t)
  const left = batch('"first"', '"second"', 'say("third"); tell("loops"); for (;;);', '"fourth"', '"fifth"')
  t.equal(await nextTold(), 'loops')
  t.same(
    messages().map(([, , , , text]) => text),
    ['first', 'second', 'third'],
  )
  t.equal(isolate.readEntryCpu(), 3)
  const [first, second, third] = isolate.entryCpuNs as unknown as [number, number, number]
  t.ok(first > 0 && second > 0)
  while (isolate.readEntryCpu() !== 3 || isolate.entryCpuNs[2] === third) await new Promise((resolve) => setImmediate(resolve))
  t.same([isolate.entryCpuNs[0], isolate.entryCpuNs[1]], [first, second], 'theirs is known')
  isolate.dispose()
  await left
  t.same(messages(), [])
  t.equal(entryCpuNs().length, 3, 'nothing of the others has begun')
})

t.test('bytes go in and come out as bytes, and as text where they are of a message', async (t) => {
  const { isolate, entered, messages } = await isolateWith(t)
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index * 31)
  const { streamData } = ENTRIES
  isolate.push(streamData, 1, 'é', OF_CALL, Buffer.from(bytes).toString('latin1'))
  isolate.push(streamData, 2, '', OF_CALL | STREAM_FLAGS.bytes, '\u0001\u00ff')
  await entered()
  t.strictSame(messages(), [
    [ECHO, 1, 0, -0.5, 'é', bytes],
    [ECHO, 2, STREAM_FLAGS.bytes, -0.5, '', '\u0001\u00ff'],
  ])
})

t.test('the host may read messages at any time, while the guest says more', async (t) => {
  const { isolate, batch, messages } = await isolateWith(t)
  const count = 20_000
  const run = { isOver: false }
  const text = `for (let i = 0; i < ${count}; i++) say(String(i), i % 100 === 0 ? 'x'.repeat(70_000) : 'é')`
  const left = batch(text).then(() => (run.isOver = true))
  const heard: string[] = []
  let times = 0
  while (!run.isOver) {
    for (const [op, , , , text] of messages()) if (op === SAID) heard.push(text)
    times++
    await new Promise((resolve) => setImmediate(resolve))
  }
  await left
  for (const [op, , , , text] of messages()) if (op === SAID) heard.push(text)
  t.ok(times > 1)
  t.same(
    heard,
    Array.from({ length: count }, (_, index) => String(index)),
  )
  t.notOk(isolate.disposed)
})

async function echo(
  t: Test,
  { isolate, entered, messages }: Rig,
  texts: ReadonlyArray<readonly [string, string]>,
): Promise<void> {
  for (const [index, [text, body]] of texts.entries()) isolate.push(ECHO, index, text, index % 3, body)
  await entered()
  const heard = messages()
  const isSame =
    heard.length === texts.length &&
    heard.every((one, index) => {
      const [op, number, kind, half, text, body] = one
      return (
        op === 3 &&
        number === index &&
        kind === index % 3 &&
        half === -0.5 &&
        text === texts[index]![0] &&
        body === texts[index]![1]
      )
    })
  t.ok(isSame, `${texts.length} texts come back as they went in`)
}

t.test('any text goes in and comes out as it is: empty, of one byte, of two, with halves of surrogate pairs', async (t) => {
  const rig = await isolateWith(t)
  await echo(t, rig, [
    ['', ''],
    ['a', ''],
    ['', 'ÿ\0'],
    ['é', '€'],
    ['\ud83d', '\udc4d\ud83d'],
    ['👍', 'x'.repeat(9)],
  ])
  const texts = fc.sample(
    fc.array(
      fc.tuple(
        fc.string({ unit: ANY_UNIT }),
        fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
      ),
      {
        minLength: 1,
        maxLength: 20,
      },
    ),
    100,
  )
  for (const one of texts) await echo(t, rig, one)
})

t.test('so do bodies of 6 MiB', async (t) => {
  const rig = await isolateWith(t, 256)
  await echo(t, rig, [
    ['one byte', 'é'.repeat(6 * MIB)],
    ['two bytes', '€'.repeat(6 * MIB)],
    ['in parts', 'a'.repeat(3 * MIB) + 'b'.repeat(3 * MIB)],
    ['x'.repeat(MIB), ''],
  ])
  await rig.batch(`say('a'.repeat(1e6) + 'b', '€'.repeat(3e6) + 'b')`)
  const [said] = rig.messages()
  t.ok(said?.[4] === `${'a'.repeat(1e6)}b` && said[5] === `${'€'.repeat(3e6)}b`, 'and what is put together only when it is said')
})

t.test('isolates are told apart', async (t) => {
  const rigs = await Promise.all(Array.from({ length: 12 }, () => isolateWith(t)))
  await Promise.all(
    rigs.map(async ({ batch, messages }, index) => {
      for (let round = 0; round < 20; round++) {
        await batch(`${index}`, `${round}`)
        t.same(
          messages().map(([, , , , text]) => text),
          [`${index}`, `${round}`],
        )
      }
    }),
  )
})
