import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { isAdmin, requireScope } from '../src/index.ts'
import { MIGRATIONS } from '../src/open-access.ts'
import { TokenStore } from '../src/token-store.ts'
import { dump, open } from './support/open.ts'

const DAY_MS = 86_400_000
const INVALID = { code: 'unauthorized', message: /^The token is not valid/ }

t.test('a token stands for its owner with its scopes, also after a restart, until it is revoked', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  const { token, id, ...info } = before.tokens.create({ owner: 'acme', scopes: ['read', 'deploy', 'read'] })
  t.match(token, /^cpt_[0-9a-f]{16}_[\w-]{43}$/)
  t.ok(token.startsWith(`cpt_${id}_`))
  t.strictSame(info, { owner: 'acme', scopes: ['deploy', 'read'], createdAt: '2026-01-01T00:00:00.000Z' })
  before.close()
  const { tokens } = open(t, folder)
  t.strictSame(tokens.authenticate(token), { tokenId: id, owner: 'acme', scopes: new Set(['deploy', 'read']) })
  const revoked: string[] = []
  tokens.onRevoke((id) => revoked.push(id))
  t.ok(tokens.isValid(id))
  tokens.revoke(id)
  t.throws(() => tokens.authenticate(token), INVALID)
  t.notOk(tokens.isValid(id))
  t.throws(() => tokens.revoke(id), { code: 'token-not-found' })
  t.strictSame(revoked, [id])
  t.strictSame(tokens.list(), [])
})

t.test('what is kept does not tell the token', async (t) => {
  const folder = t.testdir()
  const { tokens, close } = open(t, folder)
  const { token, id } = tokens.create({ owner: 'acme', scopes: ['read'] })
  close()
  const kept = dump(folder)
  t.ok(kept.includes(id))
  t.notOk(kept.includes(token.slice(`cpt_${id}_`.length)))
  t.equal(statSync(join(folder, 'access.sqlite')).mode & 0o077, 0)
})

t.test('a token that was damaged on the disk keeps the store from being opened', async (t) => {
  const damages = [`hash = x'00'`, `hash = x''`, `scopes = '5'`, `scopes = '"admin"'`, `id = 'a'`, `owner = ''`]
  for (const damage of damages) {
    await t.test(damage, async (t) => {
      const folder = t.testdir()
      const { tokens, close } = open(t, folder)
      tokens.create({ owner: 'acme', scopes: ['read'] })
      close()
      const database = new DatabaseSync(join(folder, 'access.sqlite'))
      database.exec(`UPDATE tokens SET ${damage}`)
      database.close()
      t.throws(() => open(t, folder), {
        code: 'data-unusable',
        message: /^A token in the access database, .* is damaged: its id is "/,
      })
    })
  }
})

t.test('another secret, another id and other texts are no tokens', async (t) => {
  const { tokens } = open(t)
  const { token, id } = tokens.create({ owner: 'acme', scopes: ['read'] })
  const other = tokens.create({ owner: 'acme', scopes: ['read'] })
  const changed = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')
  const swapped = token.replace(id, other.id)
  for (const text of [changed, swapped, `${token}x`, token.toUpperCase(), id, '', 'cpt_', 'x'.repeat(100_000), `${token}\n`])
    t.throws(() => tokens.authenticate(text), INVALID, text.slice(0, 80))
})

t.test('a token expires', async (t) => {
  const { tokens, clock } = open(t)
  const { token, id, expiresAt } = tokens.create({ owner: 'acme', scopes: ['read'], days: 2 })
  t.equal(expiresAt, '2026-01-03T00:00:00.000Z')
  clock.nowMs += 2 * DAY_MS - 1
  t.match(tokens.authenticate(token), { owner: 'acme' })
  t.ok(tokens.isValid(id))
  clock.nowMs += 1
  t.throws(() => tokens.authenticate(token), { code: 'unauthorized', message: 'The token has expired.' })
  t.notOk(tokens.isValid(id))
  t.match(tokens.list(), [{ id }], 'it is listed for a while')
})

t.test('tokens that have expired are removed: long after, and at once where there are too many', async (t) => {
  const folder = t.testdir()
  const { tokens, clock, close } = open(t, folder)
  const DAYS = { owner: 'acme', scopes: ['read'], days: 1 } as const
  const { id } = tokens.create(DAYS)
  clock.nowMs += 31 * DAY_MS - 1
  const next = tokens.create(DAYS)
  t.match(tokens.list(), [{ id }, { id: next.id }])
  clock.nowMs += 1
  tokens.create(DAYS)
  t.equal(tokens.find(id), undefined)
  close()
  t.notOk(dump(folder).includes(id), 'also on the disk')
})

t.test('expired tokens keep nobody from making one', async (t) => {
  const database = new DatabaseSync(':memory:')
  for (const migration of MIGRATIONS) database.exec(migration)
  t.teardown(() => database.close())
  const clock = { nowMs: 0 }
  const tokens = new TokenStore(database, { now: () => clock.nowMs, onProblem: (cause) => t.fail(String(cause)), maxTokens: 1 })
  const { id } = tokens.create({ owner: 'acme', scopes: ['read'], days: 1 })
  t.throws(() => tokens.create({ owner: 'acme', scopes: ['read'] }), { code: 'bad-request' })
  clock.nowMs = DAY_MS
  tokens.create({ owner: 'acme', scopes: ['read'] })
  t.equal(tokens.find(id), undefined)
})

t.test('when it was last used is written once a minute', async (t) => {
  const folder = t.testdir()
  const { tokens, clock, close } = open(t, folder)
  const { token, id } = tokens.create({ owner: 'acme', scopes: ['read'] })
  t.notHas(tokens.find(id), { lastUsedAt: String })
  clock.nowMs += 1
  tokens.authenticate(token)
  t.match(tokens.find(id), { lastUsedAt: '2026-01-01T00:00:00.001Z' })
  clock.nowMs += 59_999
  tokens.authenticate(token)
  t.match(tokens.find(id), { lastUsedAt: '2026-01-01T00:00:00.001Z' })
  clock.nowMs += 1
  tokens.authenticate(token)
  close()
  t.match(open(t, folder).tokens.find(id), { lastUsedAt: '2026-01-01T00:01:00.001Z' })
})

t.test('a token is good also when it cannot be written that it was used', async (t) => {
  const folder = t.testdir()
  const { tokens, problems, close } = open(t, folder)
  const { token } = tokens.create({ owner: 'acme', scopes: ['read'] })
  close()
  t.match(tokens.authenticate(token), { owner: 'acme' })
  t.match(tokens.authenticate(token), { owner: 'acme' })
  t.equal(problems.length, 1)
})

t.test('what makes no token is refused', async (t) => {
  const { tokens } = open(t)
  const create = (given: object) => () => tokens.create({ owner: 'acme', scopes: ['read'], ...given })
  t.throws(create({ owner: 'Acme' }), { code: 'invalid-name', message: /^"Acme" is no name of an owner: use/ })
  t.throws(create({ owner: '' }), { code: 'invalid-name' })
  t.throws(create({ scopes: [] }), { code: 'bad-request', message: /deploy, invoke, read, admin/ })
  t.throws(create({ scopes: ['root'] }), { code: 'bad-request' })
  for (const days of [0, -1, 1.5, 3_651, Number.NaN])
    t.throws(create({ days }), { code: 'bad-request', message: /1 to 3650 days/ })
  t.strictSame(tokens.list(), [])
})

t.test('a scope that this version does not know allows nothing', async (t) => {
  const folder = t.testdir()
  const before = open(t, folder)
  const { token } = before.tokens.create({ owner: 'acme', scopes: ['read'] })
  before.close()
  const database = new DatabaseSync(join(folder, 'access.sqlite'))
  database.exec(`UPDATE tokens SET scopes = '["fly"]'`)
  database.close()
  t.strictSame([...open(t, folder).tokens.authenticate(token).scopes], [])
})

t.test('a scope that is missing is named; an admin needs none', async (t) => {
  const principal = (...scopes: Array<'read' | 'invoke' | 'admin'>) => ({ tokenId: '1', owner: 'acme', scopes: new Set(scopes) })
  requireScope(principal('read'), 'read')
  requireScope(principal('admin'), 'deploy')
  t.throws(() => requireScope(principal('read', 'invoke'), 'deploy'), {
    code: 'forbidden',
    message: 'This needs a token with the scope "deploy"; this one has read, invoke.',
  })
  t.ok(isAdmin(principal('admin')))
  t.notOk(isAdmin(principal('read')))
})

t.test('a database that is damaged is refused with words of its own', async (t) => {
  const folder = t.testdir({ 'access.sqlite': 'x'.repeat(8192) })
  t.throws(() => open(t, folder), {
    code: 'data-unusable',
    message: /^The access database, access\.sqlite in the data folder, is damaged/,
  })
})

t.test('there is a limit on tokens', async (t) => {
  const database = new DatabaseSync(':memory:')
  t.teardown(() => database.close())
  for (const migration of MIGRATIONS) database.exec(migration)
  const tokens = new TokenStore(database, { now: () => 0, onProblem: () => {}, maxTokens: 1 })
  const { id } = tokens.create({ owner: 'acme', scopes: ['read'] })
  t.throws(() => tokens.create({ owner: 'acme', scopes: ['read'] }), { code: 'bad-request', message: /There are 1 tokens/ })
  tokens.revoke(id)
  tokens.create({ owner: 'acme', scopes: ['read'] })
})
