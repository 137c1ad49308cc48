import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { clampFigure, readUuid, writeUuid } from '../src/journal-format.ts'

t.test('a UUID is the same after it was bytes', async () => {
  const bytes = new Uint8Array(20)
  fc.assert(fc.property(fc.uuid(), (uuid) => writeUuid(uuid, bytes, 2) && readUuid(bytes.subarray(2, 18)) === uuid))
  const uuid = randomUUID()
  t.ok(writeUuid(uuid.toUpperCase(), bytes, 0))
  t.equal(readUuid(bytes.subarray(0, 16)), uuid)
  t.equal(readUuid(bytes.subarray(0, 3)), uuid.slice(0, 6), 'other bytes are told by their digits')
})

t.test('a text that is no UUID is told', async (t) => {
  const uuid = randomUUID()
  for (let index = 0; index < uuid.length; index += 1) {
    for (const wrong of ['x', 'é', '-', ' ']) {
      if (uuid[index] === '-' && wrong === '-') continue
      t.notOk(writeUuid(uuid.slice(0, index) + wrong + uuid.slice(index + 1), new Uint8Array(16), 0))
    }
  }
})

t.test('figures are whole, not negative and not too large', async () => {
  fc.assert(
    fc.property(fc.double(), (value) => {
      const figure = clampFigure(value)
      return (
        Number.isSafeInteger(figure) && figure >= 0 && (!(value >= 0 && value <= 2 ** 53 - 1) || figure === Math.floor(value))
      )
    }),
  )
})
