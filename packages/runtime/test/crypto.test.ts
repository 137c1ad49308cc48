import t from 'tap'
import { run } from './support/guest.ts'

t.test('Random bytes are never given out again', (t) => {
  const drawn = run(
    `return Array.from({ length: 2000 }, () => [crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(4)).join()])`,
  )
  const all = (drawn as string[][]).flat()
  t.equal(new Set(all).size, all.length)
  t.match(all[0], /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
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
