import fc from 'fast-check'
import t from 'tap'
import { FrameReader, FrameWriter, type Frame } from '../src/index.ts'

const frames = fc.array(
  fc.record({
    message: fc.record({ type: fc.constantFrom('invoke', 'answer'), invocation: fc.nat() }),
    text: fc.string({ unit: 'binary', maxLength: 300 }).map((text) => text.toWellFormed()),
    body: fc.uint8Array({ maxLength: 2000 }),
  }),
  { maxLength: 20 },
)

function encode(list: ReadonlyArray<Frame<object>>): Buffer {
  const writer = new FrameWriter()
  for (const { message, text, body } of list) writer.append(message, text, body)
  return writer.take()
}

t.test('frames come back as they were, however the bytes are cut', async () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }), (list, cuts) => {
      const bytes = encode(list)
      const reader = new FrameReader<object>()
      const read: Array<Frame<object>> = []
      for (let offset = 0, turn = 0; offset < bytes.length; turn++) {
        const end = offset + (cuts[turn % cuts.length] ?? 1)
        for (const { message, text, body } of reader.read(bytes.subarray(offset, end))) {
          read.push({ message, text, body: new Uint8Array(body) })
        }
        offset = end
      }
      return JSON.stringify(read) === JSON.stringify(list)
    }),
  )
})

t.test('a frame larger than the first buffer is written whole', async (t) => {
  const body = new Uint8Array(300_000).fill(7)
  const [frame] = [...new FrameReader<object>().read(encode([{ message: { type: 'x' }, text: 'ü'.repeat(100_000), body }]))]
  t.equal(frame?.text.length, 100_000)
  t.equal(Buffer.compare(frame?.body ?? new Uint8Array(), body), 0)
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
  t.throws(() => [...new FrameReader(1024).read(Buffer.alloc(12, 0xff))], /too large/)
})
