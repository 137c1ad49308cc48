import * as fc from 'fast-check'
import t from 'tap'
import { ANY_UNIT } from '../../../test/support/any-text.ts'
import { CLOSE_CODES, FrameDecoder } from '../src/web-socket/frame-decoder.ts'
import { closeFrame, frameOf } from '../src/web-socket/frames.ts'
import { checkedUtf8 } from '../src/web-socket/utf8.ts'

interface Frame {
  readonly opcode: number
  readonly payload: Buffer
  readonly isFinal?: boolean
}

/** A frame as a client sends it. */
function masked({ opcode, payload, isFinal = true }: Frame, mask = Buffer.from([1, 2, 3, 4])): Buffer {
  const { length } = payload
  const head = Buffer.concat(frameOf(opcode, payload, isFinal)).subarray(0, length > 0xffff ? 10 : length > 125 ? 4 : 2)
  const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  const first = Buffer.from(head)
  first[1] = (first[1] ?? 0) | 0x80
  return Buffer.concat([first, mask, masked])
}

type Said = readonly unknown[]

/** What a decoder says of bytes that come in pieces of so many bytes. */
function decode(bytes: Buffer, pieceBytes = bytes.length, limitBytes = 1_000_000): Said[] {
  const said: Said[] = []
  const state = { isOver: false }
  const decoder = new FrameDecoder(
    {
      message: (kind, payload) => said.push([kind, Buffer.from(payload).toString('latin1')]),
      ping: (payload) => said.push(['ping', Buffer.from(payload).toString('latin1')]),
      closed: (code, reason) => {
        state.isOver = true
        said.push(['closed', code, reason])
      },
      broken: (code) => {
        state.isOver = true
        said.push(['broken', code])
      },
    },
    limitBytes,
  )
  for (let start = 0; start < bytes.length && !state.isOver; start += Math.max(1, pieceBytes)) {
    // It is unmasked in place.
    decoder.push(Buffer.from(bytes.subarray(start, start + Math.max(1, pieceBytes))))
    while (decoder.isBusy) decoder.step()
  }
  return said
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

t.test('whatever pieces frames come in, they say the same', (t) => {
  const payload = fc.uint8Array({ maxLength: 70_000, size: 'max' }).map((bytes) => Buffer.from(bytes))
  const message = fc.oneof(
    payload.map((bytes) => ({ kind: 'bytes', opcode: 2, bytes })),
    fc.string({ unit: ANY_UNIT, maxLength: 300 }).map((text) => ({ kind: 'text', opcode: 1, bytes: Buffer.from(text) })),
  )
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 4 }),
      fc.integer({ min: 1, max: 70_000 }),
      fc.integer({ min: 1, max: 40_000 }),
      (messages, piece, fragment) => {
        const frames: Buffer[] = []
        for (const { opcode, bytes } of messages) {
          for (let at = 0; at === 0 || at < bytes.length; at += fragment) {
            const part = {
              opcode: at === 0 ? opcode : 0,
              payload: bytes.subarray(at, at + fragment),
              isFinal: at + fragment >= bytes.length,
            }
            frames.push(masked(part), masked({ opcode: 9, payload: Buffer.from('p') }))
          }
        }
        const said = decode(Buffer.concat(frames), piece).filter(([kind]) => kind !== 'ping')
        t.strictSame(
          said,
          messages.map(({ kind, bytes }) => [kind, bytes.toString('latin1')]),
        )
      },
    ),
    { numRuns: 60 },
  )
  t.end()
})

t.test('what breaks the protocol is said as soon as it is known, in whatever pieces it comes', (t) => {
  const cases: Array<[what: string, bytes: Buffer, said: Said]> = [
    ['no mask', hex('8101'), ['broken', 1002]],
    ['the first reserved bit', hex('c180'), ['broken', 1002]],
    ['the second', hex('a180'), ['broken', 1002]],
    ['the third', hex('9180'), ['broken', 1002]],
    ['an opcode of data that is none', hex('8380'), ['broken', 1002]],
    ['an opcode of control that is none', hex('8b80'), ['broken', 1002]],
    ['a control frame in fragments', hex('0980'), ['broken', 1002]],
    ['a control frame that is too long', hex('89fe'), ['broken', 1002]],
    ['a message that goes on and never began', hex('8080'), ['broken', 1002]],
    ['a message within another one', hex('0180 00000000 8180'), ['broken', 1002]],
    ['a length of 16 bits that needs 7', hex('82fe 007d 00000000'), ['broken', 1002]],
    ['a length of 64 bits that needs 16', hex('82ff 000000000000ffff 00000000'), ['broken', 1002]],
    ['a length with its highest bit', hex('82ff 8000000000000000 00000000'), ['broken', 1002]],
    ['a message that is too large', hex('82ff 00000000000f4241 00000000'), ['broken', 1009]],
    ['a text that is none', hex('8181 00000000 ff'), ['broken', 1007]],
    ['a surrogate', hex('8183 00000000 eda080'), ['broken', 1007]],
    ['a text that ends within a character', hex('8182 00000000 c3a4'.replace('c3a4', 'e282')), ['broken', 1007]],
    ['text that cannot become any, before its end', hex('0181 00000000 f4 0081 00000000 90'), ['broken', 1007]],
    ['a close code of one byte', hex('8881 00000000 03'), ['broken', 1002]],
    ['a close code that may not be sent', hex('8882 00000000 03ed'), ['broken', 1002]],
    ['a reason that is no text', hex('8883 00000000 03e8 ff'), ['broken', 1007]],
    ['a close without a code', hex('8880 00000000'), ['closed', CLOSE_CODES.none, '']],
    ['a close with a reason', hex('8884 00000000 03e8 6869'), ['closed', 1000, 'hi']],
  ]
  for (const [what, bytes, said] of cases) {
    for (const piece of [1, 3, bytes.length]) t.strictSame(decode(bytes, piece), [said], `${what}, in pieces of ${piece}`)
  }
  t.end()
})

t.test('the limit is one of messages, however many fragments they have', (t) => {
  const part = (isFirst: boolean, isFinal: boolean): Buffer =>
    masked({ opcode: isFirst ? 2 : 0, payload: Buffer.alloc(40), isFinal })
  const bytes = Buffer.concat([part(true, false), part(false, true), part(true, false), part(false, false), part(false, true)])
  t.match(decode(bytes, bytes.length, 100), [
    ['bytes', String],
    ['broken', 1009],
  ])
  t.end()
})

t.test('of a message that comes byte by byte it holds at most twice as much, and of one that was only announced no more', (t) => {
  const nothing = (): void => {}
  const decoder = new FrameDecoder({ message: nothing, ping: nothing, closed: nothing, broken: nothing }, 32 * 1024 * 1024)
  for (const byte of masked({ opcode: 2, payload: Buffer.alloc(1_000_000) }).subarray(0, 200_000)) {
    decoder.push(Buffer.from([byte]))
    while (decoder.isBusy) decoder.step()
  }
  t.ok(decoder.heldBytes <= 400_000, `${decoder.heldBytes}`)
  t.end()
})

t.test('a prefix of UTF-8 is known to be one, and whatever cannot become any to be none', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 6 }), fc.boolean(), (random, isText) => {
      const bytes = isText ? Buffer.from(Buffer.from(random).toString()) : Buffer.from(random)
      const decoder = new TextDecoder('utf-8', { fatal: true })
      let isValid = true
      try {
        decoder.decode(bytes, { stream: true })
      } catch {
        isValid = false
      }
      t.equal(checkedUtf8(bytes, 0, bytes.length) >= 0, isValid, bytes.toString('hex'))
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('a reason that is too long for a close frame loses whole characters', (t) => {
  const [frame = Buffer.alloc(0)] = closeFrame(1008, 'ü'.repeat(100))
  t.equal(frame.subarray(4).toString(), 'ü'.repeat(61))
  t.strictSame(closeFrame(1006, 'never sent'), [hex('8800')])
  t.end()
})
