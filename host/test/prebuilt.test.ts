import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const native = join(import.meta.dirname, '../native')
const prebuilt = join(native, 'prebuilt')

t.test('every addon that is committed was built from the sources beside it', async (t) => {
  const hash = createHash('sha256')
  for (const file of readdirSync(native).toSorted()) if (/\.(?:cc|h)$/.test(file)) hash.update(readFileSync(join(native, file)))
  const source = hash.digest('hex')
  const files = readdirSync(prebuilt)
  const addons = files.filter((file) => file.endsWith('.node'))
  t.not(addons.length, 0)
  t.same(files.toSorted(), addons.flatMap((file) => [file, `${file}.source`]).toSorted())
  for (const addon of addons) {
    t.equal(readFileSync(join(prebuilt, `${addon}.source`), 'utf8').trim(), source, `${addon}: npm run build:clock`)
  }
})
