import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeFolder } from '../src/index.ts'

t.test('a folder is made with those around it, for its user alone', async (t) => {
  const folder = t.testdir({ file: '' })
  const path = join(folder, 'a', 'b')
  makeFolder(path)
  makeFolder(path)
  for (const made of [path, join(folder, 'a')]) t.equal(statSync(made).mode & 0o777, 0o700)
  t.throws(() => makeFolder(join(folder, 'file')), { code: 'EEXIST' })
  t.throws(() => makeFolder(join(folder, 'file', 'a')), { code: 'ENOTDIR' })
})

t.test(
  'where no folder can be made it says so, and does not try for ever',
  { skip: process.platform !== 'linux' && 'there is no /proc' },
  (t) => {
    for (const path of ['/proc/carpool', '/proc/carpool/data']) t.throws(() => makeFolder(path), { code: 'ENOENT' })
    t.end()
  },
)
