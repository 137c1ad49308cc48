import { mkdirSync, rmdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { AuditLog } from '@carpool/access'
import { CarpoolError, monotonicClock, type AuditPage } from '@carpool/core'
import t from 'tap'
import { problemOf, startControlPlane, TOKEN } from './support/control-plane.ts'

const AT = '2026-01-01T00:00:00.000Z'
const ANY = { time: AT, remoteAddress: '' }
const DEPLOY = { code: 'code', sourceMap: '{}', env: { PLAIN: 'not for the log' } }

t.test('each change has an entry: who, what, whose, and how it ended', async (t) => {
  const { as, post, send, audit } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const { id: tokenId } = acme
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  await acme.post('/v1/functions/shop/revisions', { ...DEPLOY, limits: { memoryMb: 1 } })
  await acme.get('/v1/functions')
  await acme.put('/v1/functions/shop/secrets/A', { value: 'a value' })
  await acme.delete('/v1/functions/shop/secrets/A')
  await post('/v1/functions/shop/disable', { reason: 'it is slow' })
  await send('/v1/functions/shop/enable', { method: 'POST' })
  const { id } = (await (await post('/v1/tokens', { owner: 'beta', scopes: ['read'] })).json()) as { id: string }
  await send(`/v1/tokens/${id}`, { method: 'DELETE' })
  await acme.delete('/v1/functions/shop')
  const entries = await audit.newest(100)
  const mine = { tokenId, owner: 'acme', remoteAddress: '127.0.0.1', time: /^20.*Z$/ }
  const operator = { tokenId: 'operator', remoteAddress: '127.0.0.1' }
  const expected = [
    { action: 'deployFunction', subject: 'shop', result: 'ok', ...mine },
    { action: 'deployFunction', subject: 'shop', result: 'invalid-config', ...mine },
    { action: 'setSecret', subject: 'shop/A', result: 'ok', ...mine },
    { action: 'deleteSecret', subject: 'shop/A', result: 'ok', ...mine },
    { action: 'disableFunction', subject: 'shop', result: 'ok', owner: 'acme', note: 'it is slow', ...operator },
    { action: 'enableFunction', subject: 'shop', result: 'ok', owner: 'acme', ...operator },
    { action: 'createToken', subject: id, result: 'ok', owner: 'beta', ...operator },
    { action: 'revokeToken', subject: id, result: 'ok', owner: 'beta', ...operator },
    { action: 'deleteFunction', subject: 'shop', result: 'ok', ...mine },
  ]
  t.match(entries, expected)
  t.equal(entries.length, expected.length)
  const text = JSON.stringify(entries)
  for (const secret of ['a value', 'not for the log', TOKEN, acme.token]) t.notOk(text.includes(secret))
})

t.test('each access that is refused has an entry, and what is only read has none', async (t) => {
  const { as, url, audit } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const beta = as('beta', 'deploy', 'read')
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  await fetch(`${url}/v1/usage`)
  await fetch(`${url}/v1/functions/shop`, { headers: { authorization: `Bearer ${TOKEN}`, origin: 'http://evil.example' } })
  await beta.get('/v1/tokens')
  await beta.get('/v1/functions/shop')
  await beta.get('/v1/functions/none')
  await beta.post('/v1/functions/shop/revisions', DEPLOY)
  await beta.put('/v1/functions/shop/secrets/A', { value: 'v' })
  await beta.get('/v1/functions/shop/secrets')
  await beta.delete(`/v1/tokens/${beta.token}`)
  await acme.get('/v1/functions/shop')
  const entries = (await audit.newest(100)).slice(1).map((entry) => ({ ...entry, time: AT, remoteAddress: '' }))
  const ofBeta = { tokenId: beta.id, owner: 'beta' }
  t.strictSame(entries, [
    { ...ANY, action: 'readUsage', result: 'unauthorized' },
    { ...ANY, action: 'getFunction', subject: 'shop', result: 'unauthorized' },
    { ...ANY, action: 'listTokens', result: 'forbidden', ...ofBeta },
    { ...ANY, action: 'getFunction', subject: 'shop', result: 'not-found', ...ofBeta },
    { ...ANY, action: 'deployFunction', subject: 'shop', result: 'name-taken', ...ofBeta },
    { ...ANY, action: 'setSecret', subject: 'shop/A', result: 'name-taken', ...ofBeta },
    { ...ANY, action: 'listSecrets', subject: 'shop', result: 'not-found', ...ofBeta },
    { ...ANY, action: 'revokeToken', result: 'unauthorized' },
  ])
})

t.test('one bearer does not fill the log with refused accesses', async (t) => {
  const { as, audit } = await startControlPlane(t)
  const { get } = as('acme', 'read')
  for (let i = 0; i < 40; i++) await get('/v1/audit')
  const entries = await audit.newest(100)
  t.ok(entries.length >= 20 && entries.length < 40, String(entries.length))
  t.match(entries[19], { note: /refused accesses and failed changes of this token are left out/ })
})

t.test('changes that fail do not fill the log either, but those of admins are all there', async (t) => {
  const { as, audit, send } = await startControlPlane(t)
  const acme = as('acme', 'deploy')
  for (let i = 0; i < 40; i++) await acme.delete('/v1/functions/none')
  const ofAcme = await audit.newest(100)
  t.ok(ofAcme.length >= 20 && ofAcme.length < 40, String(ofAcme.length))
  for (let i = 0; i < 40; i++) await send('/v1/functions/none', { method: 'DELETE' })
  t.equal((await audit.newest(100)).length - ofAcme.length, 40)
})

t.test('a change has an entry also when nobody waits for its answer', async (t) => {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<never>()
  const { url, audit } = await startControlPlane(t, undefined, {
    deployer: {
      deploy: async () => {
        begun.resolve()
        return released.promise
      },
    },
  })
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const body = JSON.stringify(DEPLOY)
  socket.write(
    [
      'POST /v1/functions/shop/revisions HTTP/1.1',
      `host: ${hostname}`,
      `authorization: Bearer ${TOKEN}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  )
  await begun.promise
  socket.destroy()
  released.reject(new CarpoolError('load-failed', 'No.'))
  let entries = await audit.newest(1)
  while (entries.length === 0) entries = await audit.newest(1)
  t.match(entries, [{ action: 'deployFunction', subject: 'shop', result: 'load-failed' }])
})

t.test('a change that has no answer to send has an entry also when nobody waits for it', async (t) => {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const { url, audit, registry, post } = await startControlPlane(t, undefined, {
    deployer: {
      remove: async (functionName) => {
        begun.resolve()
        await released.promise
        registry.remove(functionName)
      },
    },
  })
  await post('/v1/functions/shop/revisions', DEPLOY)
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(`DELETE /v1/functions/shop HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`)
  await begun.promise
  // The server answers this once it has seen that the other connection is gone.
  const left = new Promise((resolve) => socket.once('close', resolve))
  socket.resetAndDestroy()
  await left
  await fetch(`${url}/healthz`)
  released.resolve()
  let entries = await audit.newest(1)
  while (entries[0]?.action !== 'deleteFunction') entries = await audit.newest(1)
  t.match(entries, [{ subject: 'shop', result: 'ok' }])
})

t.test('a token that stands where a name should is not written', async (t) => {
  const { as, send, post, url, audit } = await startControlPlane(t)
  const token = `cpt_0123456789abcdef_${'a'.repeat(43)}`
  const acme = as('acme', 'deploy')
  await acme.put(`/v1/functions/shop/secrets/${token}`, { value: 'v' })
  await acme.put(`/v1/functions/shop/secrets/${token.replace('c', '%63')}`, { value: 'v' })
  await fetch(`${url}/v1/functions/shop/secrets/${TOKEN.replace('-', '_')}`, { method: 'DELETE' })
  await send('/v1/functions/a-token', { method: 'DELETE' })
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  await post('/v1/functions/shop/disable', { reason: `of ${token}` })
  const entries = await audit.newest(100)
  t.ok(entries.length >= 5)
  for (const part of ['cpt_0123456789abcdef', TOKEN]) t.notOk(JSON.stringify(entries).includes(part), part)
})

t.test('the newest entries are for admins, and how many were lost', async (t) => {
  const { as, post, send } = await startControlPlane(t)
  await post('/v1/functions/a/revisions', DEPLOY)
  await post('/v1/functions/b/revisions', DEPLOY)
  t.match(await (await send('/v1/audit?limit=1')).json(), { entries: [{ subject: 'b' }], lostEntries: 0 })
  t.match(((await (await send('/v1/audit')).json()) as AuditPage).entries, [{ subject: 'a' }, { subject: 'b' }])
  t.strictSame(((await (await send('/v1/audit?limit=0')).json()) as AuditPage).entries, [])
  for (const query of ['limit=1001', 'limit=-1', 'limit=x', 'n=1'])
    t.match(await problemOf(await send(`/v1/audit?${query}`)), { status: 400, code: 'bad-request' })
  t.match(await problemOf(await as('acme', 'read').send('/v1/audit')), { status: 403 })
})

t.test('a log that cannot be written stops nothing', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'audit.ndjson')
  mkdirSync(path)
  const problems: unknown[] = []
  const audit = new AuditLog(path, { clock: monotonicClock, onProblem: (problem) => problems.push(problem) })
  const { post, send } = await startControlPlane(t, undefined, { audit })
  t.equal((await post('/v1/functions/shop/revisions', DEPLOY)).status, 201)
  await audit.flush()
  t.match(problems, [{ lostEntries: 1, cause: { code: 'EISDIR' } }])
  rmdirSync(path)
  t.equal((await send('/v1/functions/shop', { method: 'DELETE' })).status, 204)
  t.match(await (await send('/v1/audit')).json(), { entries: [{ action: 'deleteFunction' }], lostEntries: 1 })
})
