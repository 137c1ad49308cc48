import t from 'tap'
import { Guest, guestOf, run } from './support/guest.ts'

t.test('The pool is filled at boot, so the first values ask nothing of the host', (t) => {
  const guest = new Guest()
  t.equal(guest.entropyCalls, 1)
  guest.load(`({ default: () => Response.json(crypto.randomUUID()) })`)
  t.match(JSON.parse(guest.call().body), /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  t.equal(guest.entropyCalls, 1)
  t.end()
})

t.test('Random bytes are used once, and more are fetched when the pool is empty', (t) => {
  const guest = guestOf(
    `const bytes = crypto.getRandomValues(new Uint8Array(4090)); const more = crypto.getRandomValues(new Uint8Array(12)); return Response.json([[...bytes.subarray(0, 3)], [...more]])`,
  )
  const expected = (index: number): number => (index * 131 + (index >> 5)) & 0xff
  const [first, more] = JSON.parse(guest.call().body) as number[][]
  t.same(first, [0, 1, 2].map(expected))
  t.same(more, [4090, 4091, 4092, 4093, 4094, 4095, 0, 1, 2, 3, 4, 5].map(expected))
  t.equal(guest.entropyCalls, 2)
  t.end()
})

t.test('getRandomValues fills typed arrays of integers in place', (t) => {
  t.same(
    run(`const array = new Uint32Array(4); const view = new Uint8ClampedArray(new ArrayBuffer(8), 4, 2)
      return [crypto.getRandomValues(array) === array, array.some((item) => item > 0xffffff), crypto.getRandomValues(view).length, [...new Uint8Array(view.buffer, 0, 4)], crypto.getRandomValues(new BigInt64Array(1)).length, crypto.getRandomValues(new Uint8Array(65536)).length]`),
    [true, true, 2, [0, 0, 0, 0], 1, 65_536],
  )
  t.end()
})

t.test('getRandomValues refuses other arrays, and more than 65536 bytes', (t) => {
  const nameOf = (value: string): unknown => run(`try { crypto.getRandomValues(${value}) } catch (error) { return error.name }`)
  t.equal(nameOf('new Uint8Array(65537)'), 'QuotaExceededError')
  t.equal(nameOf('new Float32Array(1)'), 'TypeMismatchError')
  t.equal(nameOf('new DataView(new ArrayBuffer(1))'), 'TypeMismatchError')
  t.equal(nameOf('[]'), 'TypeMismatchError')
  t.end()
})
