import fc from 'fast-check'
import t from 'tap'
import { FrameReader, FrameWriter, type Message } from '../src/index.ts'

const frames = fc.array(
  fc.record({
    message: fc.record({ type: fc.constantFrom('invoke', 'answer'), invocation: fc.nat() }),
    text: fc.string({ unit: 'binary', maxLength: 300 }).map((text) => text.toWellFormed()),
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
  for (const list of [{}, 'list', null, [{}], [{}, 1], [{}, 4, 0], [{}, 0, 4], [{}, -1, 0], [{}, 0, 1.5], [{}, '1', 0]]) {
    t.throws(() => read(list), /frame|message/, JSON.stringify(list))
  }
})
