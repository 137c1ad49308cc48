import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditPage } from '@carpool/core'
import t from 'tap'
import { problemOf, startControlPlane } from './support/control-plane.ts'

const DEPLOY = { code: 'code', sourceMap: '{}' }
const VALUE = 'a value that nobody may see'

t.test('secrets are set, listed without their values, and deleted, also before the function is deployed', async (t) => {
  const { as, access } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const beta = as('beta', 'deploy', 'read')
  const url = '/v1/functions/shop/secrets'
  t.match(await acme.get(url), { status: 404, code: 'not-found' })
  const response = await acme.put(`${url}/API_KEY`, { value: VALUE })
  t.equal(response.status, 200)
  const info = (await response.json()) as object
  t.match(info, { key: 'API_KEY', createdAt: String, updatedAt: String })
  t.strictSame(Object.keys(info), ['key', 'createdAt', 'updatedAt'])
  t.strictSame(access.secrets.current({ owner: 'acme', functionName: 'shop' }).values, { API_KEY: VALUE })
  const list = await acme.send(url)
  t.notMatch(await list.text(), new RegExp(VALUE))
  t.match(await beta.get(url), { status: 404, code: 'not-found' }, 'a name that is free may have secrets of several')
  await beta.put(`${url}/API_KEY`, { value: 'of beta' })
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  t.match(await acme.get(url), { secrets: [{ key: 'API_KEY' }] })
  t.match(await (await acme.put(`${url}/OTHER`, { value: 'v' })).json(), { key: 'OTHER', revision: /^[0-9a-f]{16}$/ })
  t.match(await beta.get(url), { secrets: [{ key: 'API_KEY' }] }, 'which it can still take away')
  t.equal((await beta.delete(`${url}/API_KEY`)).status, 204)
  t.equal((await acme.delete(`${url}/API_KEY`)).status, 204)
  t.match(await problemOf(await acme.delete(`${url}/API_KEY`)), { status: 404, code: 'secret-not-found' })
  t.match(await acme.get(url), { secrets: [{ key: 'OTHER' }] })
})

t.test('an admin acts for the owner of the function, or for whom it names', async (t) => {
  const { as, access } = await startControlPlane(t)
  const admin = as('default', 'admin')
  await as('acme', 'deploy').post('/v1/functions/shop/revisions', DEPLOY)
  await admin.put('/v1/functions/shop/secrets/A', { value: 'v' })
  await admin.put('/v1/functions/later/secrets/A?owner=beta', { value: 'v' })
  await admin.put('/v1/functions/mine/secrets/A', { value: 'v' })
  for (const owner of ['acme', 'beta', 'default']) t.equal(access.secrets.functionsOf(owner).length, 1, owner)
  t.match(await admin.get('/v1/functions/later/secrets?owner=beta'), { secrets: [{ key: 'A' }] })
})

t.test('keys and values that are none are refused, and nothing of a value is in what is answered or kept', async (t) => {
  const { as, dataDir, audit } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const cases: Array<[path: string, body: unknown, expected: object]> = [
    ['/v1/functions/shop/secrets/1A', { value: VALUE }, { status: 400, code: 'bad-request', detail: /is no key of a secret/ }],
    ['/v1/functions/shop/secrets/__proto__', { value: VALUE }, { status: 400, detail: /is no key of a secret/ }],
    ['/v1/functions/shop/secrets/A%00B', { value: VALUE }, { status: 400 }],
    ['/v1/functions/SHOP/secrets/A', { value: VALUE }, { status: 400, code: 'invalid-name' }],
    ['/v1/functions/shop/secrets/A', { value: '' }, { status: 400 }],
    ['/v1/functions/shop/secrets/A', { value: 1 }, { status: 400 }],
    ['/v1/functions/shop/secrets/A', { value: VALUE, more: VALUE }, { status: 400, detail: 'body may not have the key "more".' }],
    ['/v1/functions/shop/secrets/A', { value: `${VALUE}\ud800` }, { status: 400, detail: /half a surrogate/ }],
    [
      '/v1/functions/shop/secrets/A',
      { value: VALUE.repeat(3_000) },
      { status: 413, code: 'body-too-large', detail: /65536 bytes/ },
    ],
    [
      '/v1/functions/shop/secrets/A',
      { value: VALUE.repeat(30_000) },
      { status: 413, code: 'body-too-large', detail: /394240 bytes/ },
    ],
  ]
  for (const [path, body, expected] of cases) {
    const problem = await problemOf(await acme.put(path, body))
    t.match(problem, expected, path)
    t.notOk(JSON.stringify(problem).includes(VALUE))
  }
  t.equal((await acme.put('/v1/functions/shop/secrets/A', { value: VALUE })).status, 200)
  const { entries } = { entries: await audit.newest(100) } satisfies Pick<AuditPage, 'entries'>
  t.match(entries.at(-1), { action: 'setSecret', subject: 'shop/A', result: 'ok', owner: 'acme' })
  t.equal(entries.length, cases.length + 1)
  t.notOk(readFileSync(join(dataDir, 'audit.ndjson'), 'utf8').includes(VALUE))
})

t.test('a function that is gone can be deleted for the secrets that it left, by their owner alone', async (t) => {
  const removed: string[] = []
  const remove = async (functionName: string, owner: string): Promise<void> => void removed.push(`${owner}/${functionName}`)
  const { as } = await startControlPlane(t, undefined, { deployer: { remove } })
  const acme = as('acme', 'deploy')
  t.match(await problemOf(await acme.delete('/v1/functions/shop')), { status: 404, code: 'not-found' })
  await acme.put('/v1/functions/shop/secrets/A', { value: VALUE })
  t.match(await problemOf(await as('beta', 'deploy').delete('/v1/functions/shop')), { status: 404, code: 'not-found' })
  t.equal((await acme.delete('/v1/functions/shop')).status, 204)
  t.strictSame(removed, ['acme/shop'])
})
