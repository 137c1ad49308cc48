import fc from 'fast-check'
import t from 'tap'
import { ANY_UNIT } from '../../../test/support/any-text.ts'
import { FrameReader, FrameWriter, type Message } from '../src/index.ts'

const frames = fc.array(
  fc.record({
    message: fc.record({ type: fc.constantFrom('invoke', 'answer'), invocation: fc.nat() }),
    text: fc.string({ unit: ANY_UNIT, maxLength: 300 }).map((text) => text.toWellFormed()),
    body: fc.uint8Array({ maxLength: 2000 }),
  }),
  { maxLength: 20 },
)

function encode(list: ReadonlyArray<Message<object>>): Buffer {
  const writer = new FrameWriter()
  for (const { message, text, body } of list) writer.append(message, text, body)
  return writer.take()
}

t.test('frames come back as they were, however the bytes are cut', async () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }), (list, cuts) => {
      const bytes = encode(list)
      const reader = new FrameReader<object>()
      const read: Array<Message<object>> = []
      for (let offset = 0, turn = 0; offset < bytes.length; turn++) {
        const end = offset + (cuts[turn % cuts.length] ?? 1)
        reader.read(bytes.subarray(offset, end), (message, text, body) => {
          read.push({ message, text, body: new Uint8Array(body) })
        })
        offset = end
      }
      return JSON.stringify(read) === JSON.stringify(list)
    }),
  )
})

t.test('a frame larger than the first buffer is written whole', async (t) => {
  const body = new Uint8Array(300_000).fill(7)
  const read: Array<Message<object>> = []
  const bytes = encode([{ message: { type: 'x' }, text: 'ü'.repeat(100_000), body }])
  new FrameReader<object>().read(bytes, (message, text, body) => read.push({ message, text, body }))
  t.equal(read.length, 1)
  t.equal(read[0]?.text.length, 100_000)
  t.equal(Buffer.compare(read[0]?.body ?? new Uint8Array(), body), 0)
})

t.test('a writer is empty again after its content was taken', async (t) => {
  const writer = new FrameWriter()
  t.ok(writer.isEmpty)
  writer.append({ type: 'x' }, '', new Uint8Array())
  t.notOk(writer.isEmpty)
  writer.take()
  t.ok(writer.isEmpty)
})

t.test('bytes that announce an absurd size are refused', async (t) => {
  t.throws(() => new FrameReader(1024).read(Buffer.alloc(12, 0xff), () => {}), /too large/)
})

t.test('lists and lengths that fit no frame are refused', async (t) => {
  const frameOf = (list: unknown, text = 'abc', body = Buffer.from('xyz')): Buffer => {
    const json = Buffer.from(JSON.stringify(list))
    const header = Buffer.alloc(12)
    for (const [index, length] of [json.length, text.length, body.length].entries()) header.writeUInt32LE(length, index * 4)
    return Buffer.concat([header, json, Buffer.from(text), body])
  }
  const read = (list: unknown): number => {
    let messages = 0
    new FrameReader().read(frameOf(list), () => messages++)
    return messages
  }
  t.equal(read([{}, 1, 1, {}, 2, 2]), 2)
  for (const list of [
    {},
    'list',
    null,
    [{}],
    [{}, 1],
    [{}, 4, 0],
    [{}, 0, 4],
    [{}, -1, 0],
    [{}, 0, 1.5],
    [{}, '1', 0],
    [{}, 0, -1],
    [{}, 0, -1.5],
  ]) {
    t.throws(() => read(list), /frame|message/, JSON.stringify(list))
  }
})

t.test('bodies in parts come with their messages, whatever comes between', async (t) => {
  const bodies = [Buffer.alloc(100_000, 1), Buffer.alloc(200_000, 2)] as const
  const writer = new FrameWriter()
  const reader = new FrameReader<{ n: number }>()
  const read: Array<readonly [number, string, Buffer]> = []
  const pass = (): void => reader.read(writer.take(), ({ n }, text, body) => read.push([n, text, Buffer.from(body)]))
  for (let sent = 0; sent < 200_000; sent += 50_000) {
    for (const [index, body] of bodies.entries()) {
      if (sent < body.length) writer.appendPart(index + 1, body.length, body.subarray(sent, sent + 50_000))
    }
    writer.append({ n: sent }, 'between', Buffer.from('x'))
    if (sent === 50_000) writer.appendBehindParts({ n: 1 }, 'one', 1)
    if (sent === 150_000) writer.appendBehindParts({ n: 2 }, 'two', 2)
    pass()
  }
  t.same(
    read.map(([n, text, body]) => [n, text, body.length]),
    [
      [0, 'between', 1],
      [50_000, 'between', 1],
      [1, 'one', 100_000],
      [100_000, 'between', 1],
      [150_000, 'between', 1],
      [2, 'two', 200_000],
    ],
  )
  t.ok(read[2]?.[2].equals(bodies[0]))
  t.ok(read[5]?.[2].equals(bodies[1]))
})

t.test('a body that is given up is forgotten, and its number may not be named', async (t) => {
  const writer = new FrameWriter()
  const reader = new FrameReader<object>(100_000)
  for (let round = 1; round <= 10; round++) {
    writer.appendPart(round, 100_000, Buffer.alloc(10))
    writer.appendPart(round, 0, new Uint8Array())
  }
  reader.read(writer.take(), () => {})
  writer.appendBehindParts({}, '', 10)
  t.throws(() => reader.read(writer.take(), () => {}), /before its body/)
})

t.test('parts that fit no body are refused', async (t) => {
  const reading =
    (...parts: ReadonlyArray<readonly [number: number, totalBytes: number, bytes: number]>) =>
    () => {
      const writer = new FrameWriter()
      for (const [number, totalBytes, bytes] of parts) writer.appendPart(number, totalBytes, Buffer.alloc(bytes))
      new FrameReader(300_000).read(writer.take(), () => {})
    }
  t.doesNotThrow(reading([1, 100_000, 50_000], [2, 200_000, 0], [1, 100_000, 50_000]))
  t.throws(reading([1, 300_001, 0]), /too large/)
  t.throws(reading([1, 100_000, 0], [2, 200_001, 0]), /too large/)
  t.throws(reading([1, 100, 0]), /too small/, 'or a peer could open as many as it likes')
  t.throws(reading([1, 100_000, 50_000], [1, 100_000, 50_001]), /longer than its body/)
  t.throws(reading([1, 100_000, 10], [1, 200_000, 10]), /longer than its body/)
  t.throws(reading([1, -5, 10]), /length/)
})
