import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { FunctionSecrets, SecretHolder } from '../src/index.ts'
import { seal, unseal } from '../src/secret-key.ts'
import { SupersededSecrets } from '../src/superseded-secrets.ts'
import { dump, open } from './support/open.ts'

const SHOP: SecretHolder = { owner: 'acme', functionName: 'shop' }
const OTHER: SecretHolder = { owner: 'beta', functionName: 'shop' }
const VALUE = 'a value that nobody may see'
const UNUSABLE = {
  code: 'data-unusable',
  message: /^The secrets of shop cannot be used: their key is missing, another one or none, or they were changed on the disk\./,
}

/** Of the first set of secrets: the time of the test's clock. */
const FIRST = Date.UTC(2026, 0, 1)

function set(secrets: FunctionSecrets, holder: SecretHolder, key: string, value: string): number {
  const change = secrets.setting(holder, key, value)
  secrets.commit(change)
  return change.next.version
}

t.test('secrets belong to a function and its owner, and outlive a restart', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  t.strictSame(before.secrets.current(SHOP), { version: 0, values: {} })
  set(before.secrets, SHOP, 'API_KEY', VALUE)
  set(before.secrets, SHOP, 'constructor', 'ü')
  before.close()
  const { secrets, clock } = open(t, folder)
  t.strictSame(secrets.current(SHOP), { version: FIRST + 1, values: { API_KEY: VALUE, constructor: 'ü' } })
  t.strictSame(secrets.current(OTHER), { version: 0, values: {} })
  t.strictSame(secrets.functionsOf('acme'), ['shop'])
  t.strictSame(secrets.functionsOf('acm'), [])
  clock.nowMs += 5
  t.equal(set(secrets, SHOP, 'API_KEY', 'another'), FIRST + 5)
  t.strictSame(secrets.list(SHOP), [
    { key: 'API_KEY', createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.005Z' },
    { key: 'constructor', createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' },
  ])
})

t.test('no version comes again when the database was lost', (t) => {
  const before = open(t)
  const first = set(before.secrets, SHOP, 'API_KEY', VALUE)
  before.close()
  // Anew and empty.
  const after = open(t)
  after.clock.nowMs += 1
  t.not(set(after.secrets, SHOP, 'API_KEY', 'another'), first)
  t.end()
})

t.test('secrets that a database does not have any more are not taken for none, or for older ones', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  const first = set(before.secrets, SHOP, 'API_KEY', VALUE)
  before.close()
  cpSync(join(folder, 'access.sqlite'), join(folder, 'copy'))
  const again = open(t, folder)
  const second = set(again.secrets, SHOP, 'API_KEY', 'another')
  again.close()
  const refused = (secrets: FunctionSecrets): void => {
    t.ok(secrets.isLost({ ...SHOP, secretsVersion: second }))
    t.throws(() => secrets.of({ ...SHOP, secretsVersion: second }), {
      code: 'data-unusable',
      message: /^The secrets that shop was deployed with are lost: .* Set them again/,
    })
  }
  renameSync(join(folder, 'copy'), join(folder, 'access.sqlite'))
  const restored = open(t, folder)
  t.strictSame(restored.secrets.of({ ...SHOP, secretsVersion: first }), { API_KEY: VALUE })
  refused(restored.secrets)
  restored.close()
  rmSync(join(folder, 'access.sqlite'))
  const { secrets, clock } = open(t, folder)
  refused(secrets)
  t.strictSame(secrets.of(SHOP), {}, 'one that never had any')
  clock.nowMs += 5
  const next = set(secrets, SHOP, 'API_KEY', 'set again')
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: next }), { API_KEY: 'set again' })
  secrets.commit(secrets.deleting(SHOP, 'API_KEY'))
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: next + 1 }), {})
})

t.test('what is prepared is not in force, and of no effect on the disk', async (t) => {
  const folder = t.testdir()
  const { secrets, close } = open(t, folder)
  const { next } = secrets.setting(SHOP, 'API_KEY', VALUE)
  t.strictSame(next, { version: FIRST, values: { API_KEY: VALUE } })
  t.strictSame(secrets.current(SHOP), { version: 0, values: {} })
  t.strictSame(secrets.list(SHOP), [])
  close()
  t.strictSame(open(t, folder).secrets.functionsOf('acme'), [])
})

t.test('on the disk they are encrypted, and the key is in a file of its own that only its owner reads', async (t) => {
  const folder = t.testdir()
  const { secrets, close } = open(t, folder)
  t.notOk(statSync(join(folder, 'secret-key'), { throwIfNoEntry: false }), 'there is none before it is needed')
  set(secrets, SHOP, 'API_KEY', VALUE)
  close()
  const kept = dump(folder)
  t.ok(kept.includes('API_KEY'))
  for (const form of [VALUE, Buffer.from(VALUE).toString('base64'), Buffer.from(VALUE).toString('hex')])
    t.notOk(kept.includes(form))
  t.equal(statSync(join(folder, 'secret-key')).mode & 0o777, 0o600)
})

t.test('the key may live elsewhere', async (t) => {
  const folder = t.testdir({ keys: {} })
  const secretKeyFile = join(folder, 'keys', 'carpool')
  const before = open(t, folder, { secretKeyFile })
  set(before.secrets, SHOP, 'API_KEY', VALUE)
  before.close()
  t.notOk(statSync(join(folder, 'secret-key'), { throwIfNoEntry: false }))
  t.strictSame(open(t, folder, { secretKeyFile }).secrets.current(SHOP).values, { API_KEY: VALUE })
})

t.test('a revision is given the secrets that it was made with as long as calls of it may be under way', async (t) => {
  const { secrets } = open(t)
  const first = set(secrets, SHOP, 'API_KEY', 'old value')
  const second = set(secrets, SHOP, 'API_KEY', 'new value')
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: first }), { API_KEY: 'old value' })
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: second }), { API_KEY: 'new value' })
  t.strictSame(secrets.of(SHOP), {}, 'one from before there were any')
  t.throws(() => secrets.of({ ...OTHER, secretsVersion: first }), { code: 'data-unusable' }, 'of another owner')
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: 99 }), { API_KEY: 'new value' }, 'else those in force')
  secrets.commit(secrets.deleting(SHOP, 'API_KEY'))
  t.strictSame(secrets.current(SHOP), { version: FIRST + 2, values: {} })
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: second }), { API_KEY: 'new value' })
  t.throws(() => secrets.deleting(SHOP, 'API_KEY'), { code: 'secret-not-found', message: 'shop has no secret "API_KEY".' })
  t.throws(() => secrets.deleting(SHOP, 'toString'), { code: 'secret-not-found' })
})

t.test('after a restart a revision is given what is in force, also if it was made before there were any', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  const first = set(before.secrets, SHOP, 'API_KEY', 'old value')
  set(before.secrets, SHOP, 'API_KEY', 'new value')
  before.close()
  const { secrets } = open(t, folder)
  t.strictSame(secrets.of(SHOP), { API_KEY: 'new value' })
  t.strictSame(secrets.of({ ...SHOP, secretsVersion: first }), { API_KEY: 'new value' })
})

t.test('a change can be taken back', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  before.secrets.commit(before.secrets.setting(SHOP, 'API_KEY', 'old value'))()
  t.strictSame(before.secrets.current(SHOP).values, {})
  set(before.secrets, SHOP, 'API_KEY', 'old value')
  const listed = before.secrets.list(SHOP)
  before.clock.nowMs += 1
  before.secrets.commit(before.secrets.setting(SHOP, 'API_KEY', 'new value'))()
  t.strictSame(before.secrets.current(SHOP), { version: FIRST + 4, values: { API_KEY: 'old value' } })
  t.strictSame(before.secrets.list(SHOP), listed)
  before.secrets.commit(before.secrets.deleting(SHOP, 'API_KEY'))()
  before.close()
  const { secrets } = open(t, folder)
  t.strictSame(secrets.current(SHOP).values, { API_KEY: 'old value' })
})

t.test('a version never comes again, also when all was forgotten, and the server started anew', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  const first = set(before.secrets, SHOP, 'API_KEY', VALUE)
  before.secrets.forget(SHOP)
  t.strictSame(before.secrets.current(SHOP), { version: 0, values: {} })
  t.strictSame(before.secrets.functionsOf('acme'), [])
  t.strictSame(before.secrets.of({ ...SHOP, secretsVersion: first }), { API_KEY: VALUE }, 'calls under way go on')
  before.close()
  t.notOk(dump(folder).includes('API_KEY'))
  const { secrets } = open(t, folder)
  t.equal(set(secrets, SHOP, 'API_KEY', VALUE), first + 1)
})

t.test(
  'another key, no key, no such key and rows that were changed make them unusable, by the name of the function',
  async (t) => {
    const folder = t.testdir()
    const before = open(t, folder)
    set(before.secrets, SHOP, 'API_KEY', VALUE)
    set(before.secrets, OTHER, 'API_KEY', 'another value')
    before.close()
    const path = join(folder, 'secret-key')
    const key = readFileSync(path, 'utf8')
    const refused = (): void => {
      const { secrets, close } = open(t, folder)
      t.throws(() => secrets.current(SHOP), UNUSABLE)
      t.throws(() => secrets.of({ ...SHOP, secretsVersion: 1 }), UNUSABLE)
      t.throws(() => secrets.setting(SHOP, 'B', 'b'), UNUSABLE)
      t.equal(secrets.redact(SHOP, 'a text'), 'a text')
      close()
    }
    for (const wrong of [Buffer.alloc(32).toString('base64'), '', 'text', Buffer.alloc(16).toString('base64')]) {
      writeFileSync(path, wrong)
      refused()
    }
    rmSync(path)
    execFileSync('mkfifo', [path])
    refused()
    rmSync(path)
    refused()
    t.notOk(statSync(path, { throwIfNoEntry: false }), 'no key is made in place of one that is missing')
    writeFileSync(path, key)
    const database = new DatabaseSync(join(folder, 'access.sqlite'))
    database.exec(`UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE owner = 'beta') WHERE owner = 'acme'`)
    database.close()
    refused()
    const { secrets } = open(t, folder)
    t.strictSame(secrets.current(OTHER).values, { API_KEY: 'another value' }, 'the others are sound')
  },
)

t.test('keys and values have rules and limits', async (t) => {
  const { secrets } = open(t)
  const setting =
    (key: string, value = 'v') =>
    () =>
      secrets.setting(SHOP, key, value)
  for (const key of ['', '1A', 'A-B', 'A=B', 'Ä', 'A\n', '__proto__', '../x', 'A'.repeat(257)])
    t.throws(setting(key), { code: 'bad-request', message: /is no key of a secret/ }, JSON.stringify(key))
  t.throws(setting('A', ''), { code: 'bad-request', message: /may not be empty/ })
  t.throws(setting('A', '\ud800'), { code: 'bad-request', message: /half a surrogate/ })
  t.throws(setting('A', 'ü'.repeat(32_769)), { code: 'body-too-large', message: /at most 65536 bytes, and this one has 65538/ })
  set(secrets, SHOP, 'A'.repeat(256), 'ü'.repeat(32_768))
  for (let i = 1; i < 100; i++) set(secrets, SHOP, `KEY_${i}`, 'v')
  t.throws(setting('ONE_MORE'), { code: 'bad-request', message: 'shop has 100 secrets, which is the limit.' })
  set(secrets, SHOP, 'KEY_1', 'another')
  set(secrets, OTHER, 'KEY_1', 'v')
})

t.test('values are taken out of texts, also those that were in force lately', async (t) => {
  const folder = t.testdir()
  const { secrets, close } = open(t, folder)
  t.equal(secrets.redact(SHOP, VALUE), VALUE)
  set(secrets, SHOP, 'API_KEY', VALUE)
  t.equal(secrets.redact(SHOP, `is ${VALUE}`), 'is [secret API_KEY]')
  t.equal(secrets.redact(OTHER, VALUE), VALUE)
  set(secrets, SHOP, 'API_KEY', 'new value')
  t.equal(secrets.redact(SHOP, `${VALUE}, new value`), '[secret API_KEY], [secret API_KEY]')
  secrets.forget(SHOP)
  t.equal(secrets.redact(SHOP, VALUE), '[secret API_KEY]')
  set(secrets, SHOP, 'NEXT', 'next value')
  close()
  const { secrets: next } = open(t, folder)
  t.equal(next.redact(SHOP, 'is next value'), 'is [secret NEXT]', 'after a restart')
})

t.test('of those that are not in force any more the oldest are forgotten', async (t) => {
  const superseded = new SupersededSecrets(10, 3)
  for (let version = 1; version <= 4; version++) superseded.add('a/b', { version, values: { A: 'x' } })
  t.strictSame(
    superseded.of('a/b').map(({ version }) => version),
    [2, 3, 4],
  )
  superseded.add('a/c', { version: 5, values: { A: 'x'.repeat(9) } })
  t.strictSame([superseded.of('a/b').length, superseded.of('a/c').length], [1, 1])
  superseded.add('a/d', { version: 6, values: { A: 'x'.repeat(11) } })
  t.strictSame([superseded.of('a/b').length, superseded.of('a/d').length], [0, 0])
})

t.test('secrets that are not in force any more are forgotten for the changes of their own owner alone', async (t) => {
  const superseded = new SupersededSecrets(100, 3)
  superseded.add('b/f', { version: 1, values: { A: 'x'.repeat(40) } })
  for (let version = 2; version <= 9; version++) superseded.add('a/f', { version, values: { A: 'x'.repeat(20) } })
  t.strictSame([superseded.of('a/f').length, superseded.of('b/f').length], [2, 1])
  superseded.add('a/f', { version: 10, values: { A: 'x'.repeat(61) } })
  t.strictSame([superseded.of('a/f').length, superseded.of('b/f').length], [0, 1])
})

t.test('an empty file of the key counts as none', async (t) => {
  const folder = t.testdir({ 'secret-key': '' })
  const before = open(t, folder)
  t.equal(before.secrets.keyFault, undefined)
  set(before.secrets, SHOP, 'API_KEY', VALUE)
  before.close()
  t.strictSame(open(t, folder).secrets.current(SHOP).values, { API_KEY: VALUE })
})

t.test('a key that can neither be read nor made is told before anybody sets a secret', async (t) => {
  const folder = t.testdir({ garbage: 'hello', folder: {} })
  const cases = [
    ['garbage', /garbage cannot be read: The file does not hold 32 bytes in base64\.$/],
    ['folder', /folder is no file/],
    ['missing/key', /key cannot be made: ENOENT of .*missing\.$/],
  ] as const
  for (const [file, fault] of cases) {
    const { secrets, close } = open(t, folder, { secretKeyFile: join(folder, file) })
    t.match(secrets.keyFault, fault)
    t.throws(() => set(secrets, SHOP, 'API_KEY', VALUE), UNUSABLE)
    close()
  }
  const { secrets, close } = open(t, folder)
  t.equal(secrets.keyFault, undefined)
  set(secrets, SHOP, 'API_KEY', VALUE)
  close()
  writeFileSync(join(folder, 'secret-key'), Buffer.alloc(32).toString('base64'))
  t.match(open(t, folder).secrets.keyFault, /secret\S* is not the one that they were encrypted with\.$/)
})

t.test('what is sealed opens with its key and context alone, and no two are alike', async (t) => {
  const key = Buffer.alloc(32, 1)
  const sealed = seal(key, VALUE, 'context')
  t.equal(unseal(key, sealed, 'context'), VALUE)
  t.notSame(seal(key, VALUE, 'context'), sealed)
  t.throws(() => unseal(Buffer.alloc(32, 2), sealed, 'context'))
  t.throws(() => unseal(key, sealed, 'another'))
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = changed[at]! ^ 1
    t.throws(() => unseal(key, changed, 'context'), `byte ${at}`)
  }
  for (const length of [0, 1, 28]) t.throws(() => unseal(key, sealed.subarray(0, length), 'context'))
})
