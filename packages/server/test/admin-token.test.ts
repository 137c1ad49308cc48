import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadAdminToken } from '../src/admin-token.ts'

function emptyFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A data folder whose token file holds this. */
function folderWith(t: Test, text: string | Buffer, mode = 0o600): { folder: string; path: string } {
  const folder = emptyFolder(t)
  const path = join(folder, 'admin-token')
  writeFileSync(path, text)
  chmodSync(path, mode)
  return { folder, path }
}

t.test('a token is made once, for the user of the server alone', async (t) => {
  for (const folder of [emptyFolder(t), folderWith(t, '').folder, folderWith(t, ' \n', 0o644).folder]) {
    writeFileSync(join(folder, 'admin-token.tmp'), 'half', { mode: 0o644 })
    const token = loadAdminToken(folder)
    t.match(token, /^[\w-]{43}$/)
    t.equal(loadAdminToken(folder), token)
    t.equal(statSync(join(folder, 'admin-token')).mode & 0o777, 0o600)
    t.strictSame(readdirSync(folder), ['admin-token'])
  }
})

t.test('a token that an operator chose is taken as it is', async (t) => {
  for (const token of ['a'.repeat(43), 'b'.repeat(256), '0123456789abcdef'.repeat(4), `${'aZ0-._~+/'.repeat(5)}==`]) {
    t.equal(loadAdminToken(folderWith(t, `${token}\n`).folder), token)
  }
  const { folder, path } = folderWith(t, 'a'.repeat(43))
  const linked = emptyFolder(t)
  symlinkSync(path, join(linked, 'admin-token'))
  t.equal(loadAdminToken(linked), loadAdminToken(folder), 'a link may lead to it')
})

t.test('what is no token is refused, with the file, what is wrong, and what to do', async (t) => {
  const damaged = [
    'a',
    'a'.repeat(42),
    'a'.repeat(259),
    `${'a'.repeat(43)} ${'a'.repeat(43)}`,
    `${'a'.repeat(43)}\0`,
    'ä'.repeat(43),
    Buffer.alloc(44),
    Buffer.alloc(43, 0xff),
  ]
  for (const content of damaged) {
    const { folder, path } = folderWith(t, content)
    t.throws(() => loadAdminToken(folder), {
      code: 'data-unusable',
      message:
        `The file ${path}, which should hold the operator's token, holds no token of 43 to 256 of the characters ` +
        'A-Z, a-z, 0-9 and "-._~+/". Mend it, or delete it: then the next start makes a new one.',
    })
    t.strictSame(readFileSync(path), Buffer.from(content), 'it stays as it is')
  }
  for (const mode of [0o640, 0o604, 0o620, 0o666, 0o610]) {
    const { folder } = folderWith(t, 'a'.repeat(43), mode)
    t.throws(() => loadAdminToken(folder), { code: 'data-unusable', message: `its mode is ${mode.toString(8)}, and must be 600` })
  }
  t.throws(() => loadAdminToken(folderWith(t, 'a'.repeat(5_000)).folder), { message: /is no file with a token/ })
  const folder = emptyFolder(t)
  mkdirSync(join(folder, 'admin-token'))
  t.throws(() => loadAdminToken(folder), { code: 'data-unusable', message: /is no file with a token/ })
  rmdirSync(join(folder, 'admin-token'))
  execFileSync('mkfifo', [join(folder, 'admin-token')])
  t.throws(() => loadAdminToken(folder), { code: 'data-unusable', message: /is no file with a token/ })
})
