import t from 'tap'
import { isolateWith } from './support/isolate.ts'

t.test('run gives what the entry returned, once the entries before it have run', async (t) => {
  const { isolate, asked } = await isolateWith(t)
  isolate.enter('value', ['ask(1)'])
  isolate.enter('value', ['ask(2)'])
  t.equal(await isolate.run('value', ['6 * 7']), 42)
  t.same(asked, [1, 2])
  t.equal(await isolate.run('value', ['"text"']), 'text')
  t.equal(await isolate.run('value', ['undefined']), undefined)
})

t.test('run waits for the microtasks of the entry too', async (t) => {
  const { isolate, asked } = await isolateWith(t)
  await isolate.run('value', ['Promise.resolve().then(() => {}).then(() => ask(3)); 0'])
  t.same(asked, [3])
})

t.test('run fails if the entry throws, after it has run, and the isolate goes on', async (t) => {
  const { isolate, asked } = await isolateWith(t)
  await t.rejects(isolate.run('value', ['ask(4); throw new TypeError("thrown")']), { message: 'thrown' })
  t.same(asked, [4])
  t.equal(await isolate.run('value', ['1']), 1)
})

t.test('run, enterCode and heapBytes fail if the isolate is gone, or ended meanwhile', async (t) => {
  const { isolate, next } = await isolateWith(t)
  const code = { source: '(function () {})', filename: 'f.js' }
  const endless = isolate.run('value', ['tell("begun"); for (;;);'])
  const behind = [isolate.run('value', ['1']), isolate.heapBytes(), isolate.enterCode('load', '', code)]
  const ended = Promise.allSettled([endless, ...behind])
  t.equal(await next(), 'begun')
  isolate.dispose()
  t.same(
    (await ended).map(({ status }) => status),
    ['rejected', 'rejected', 'rejected', 'rejected'],
  )
  await t.rejects(isolate.run('value', ['1']))
  await t.rejects(isolate.heapBytes())
  await t.rejects(isolate.enterCode('load', '', code))
})

t.test('enterCode resolves after the entry has run', async (t) => {
  const { isolate, asked, next } = await isolateWith(t)
  const source = '(function () { for (let i = 0; i < 1e6; i++); ask(5); Promise.resolve().then(() => ask(6)); return "exports" })'
  await isolate.enterCode('load', 'loaded', { source, filename: 'f.js' })
  t.same(asked, [5, 6])
  t.equal(await next(), 'loaded "exports"')
})

t.test('the heap is what code keeps, on it and outside of it', async (t) => {
  const { isolate } = await isolateWith(t, 128)
  const MIB = 1024 * 1024
  const empty = await isolate.heapBytes()
  t.ok(empty > 0 && empty < 16 * MIB, `${empty} bytes`)
  await isolate.run('value', ['globalThis.objects = Array.from({ length: 500_000 }, (_, i) => ({ i })); 0'])
  const onHeap = await isolate.heapBytes()
  t.ok(onHeap - empty >= 500_000 * 8, `${onHeap - empty} bytes more`)
  await isolate.run('value', ['globalThis.bytes = new Uint8Array(20 * 1024 * 1024).fill(1); 0'])
  const outside = await isolate.heapBytes()
  t.ok(outside - onHeap >= 15 * MIB, `${outside - onHeap} bytes more`)
})
