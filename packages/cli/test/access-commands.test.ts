import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { run } from '../src/index.ts'
import { startControlPlane, TOKEN } from './support/control-plane.ts'
import { captureIo, runCommand } from './support/run-command.ts'

const AT = '2026-01-01T00:00:00.000Z'
const ID = '0123456789abcdef'

async function start(t: Test, answers: Readonly<Record<string, unknown>>) {
  const plane = await startControlPlane(t)
  plane.answers = answers
  return { plane, env: { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN } }
}

t.test('a token goes to stdout alone, and what there is to know of it to stderr', async (t) => {
  const info = { id: ID, owner: 'acme', scopes: ['deploy', 'read'], createdAt: AT, expiresAt: AT }
  const { plane, env } = await start(t, { 'POST /v1/tokens': { ...info, token: 'cpt_x' } })
  const argv = ['token', 'create', '--owner', 'acme', '--scope', 'read, deploy', '--days', '30']
  t.match(await runCommand(argv, { env }), {
    exitCode: 0,
    stdout: 'cpt_x\n',
    stderr: `Token ${ID} of acme for deploy, read, until ${AT}, at ${plane.url}. It is shown only now.\n`,
  })
  t.strictSame(JSON.parse((await runCommand([...argv, '--json'], { env })).stdout), {
    ...info,
    token: 'cpt_x',
    server: plane.url,
  })
  t.strictSame(plane.asked[0], { request: 'POST /v1/tokens', body: { owner: 'acme', scopes: ['deploy', 'read'], days: 30 } })
})

t.test('tokens are listed and revoked, also by the token itself, which is not sent', async (t) => {
  const tokens = [
    { id: ID, owner: 'acme', scopes: ['deploy', 'read'], createdAt: AT },
    { id: 'f'.repeat(16), owner: 'b', scopes: ['admin'], createdAt: AT, expiresAt: AT, lastUsedAt: AT },
  ]
  const { plane, env } = await start(t, { 'GET /v1/tokens': { tokens }, [`DELETE /v1/tokens/${ID}`]: undefined })
  const { stdout } = await runCommand(['token', 'list'], { env })
  t.match(
    stdout,
    /^ID {16}OWNER {2}SCOPES {7}CREATED {19}EXPIRES {19}LAST USED\n0123456789abcdef {2}acme {3}deploy,read {2}.* never .* never\n/,
  )
  t.strictSame(JSON.parse((await runCommand(['token', 'list', '--json'], { env })).stdout), tokens)
  t.match(await runCommand(['token', 'revoke', ID], { env }), { exitCode: 0, stdout: `Revoked ${ID} at ${plane.url}.\n` })
  const { stdout: revoked } = await runCommand(['token', 'revoke', `cpt_${ID}_secret`, '--json'], { env })
  t.strictSame(JSON.parse(revoked), { revoked: ID, server: plane.url })
  t.notMatch(JSON.stringify(plane.asked), 'secret')
})

t.test('the value of a secret comes from stdin, without the end of its line', async (t) => {
  const info = { key: 'API_KEY', createdAt: AT, updatedAt: AT }
  const path = 'PUT /v1/functions/shop/secrets/API_KEY'
  const { plane, env } = await start(t, { [path]: { ...info, revision: ID } })
  const set = (stdin: string, ...more: string[]) => runCommand(['secret', 'set', 'shop', 'API_KEY', ...more], { env, stdin })
  t.match(await set('a value\n'), {
    exitCode: 0,
    stdout: `Set API_KEY of shop at ${plane.url}: revision ${ID} has it.\n`,
    stderr: '',
  })
  await set('two\nlines\r\n', '--owner', 'acme')
  const { stdout } = await set('', '--value', 'given', '--json')
  t.strictSame(JSON.parse(stdout), { ...info, revision: ID, server: plane.url })
  t.strictSame(plane.asked, [
    { request: path, body: { value: 'a value' } },
    { request: `${path}?owner=acme`, body: { value: 'two\nlines' } },
    { request: path, body: { value: 'given' } },
  ])
  plane.answers = { [path]: info }
  t.match(await set('v'), { stdout: `Set API_KEY of shop at ${plane.url}: for when it is deployed.\n` })
  t.match(await set(''), { exitCode: 2, stderr: /a value for API_KEY is needed/ })
})

t.test('on a terminal it is asked for and not shown', async (t) => {
  const path = 'PUT /v1/functions/shop/secrets/API_KEY'
  const { plane, env } = await start(t, { [path]: { key: 'API_KEY', createdAt: AT, updatedAt: AT } })
  const { io, written, untilWritten } = captureIo(env)
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const ended = run(['secret', 'set', 'shop', 'API_KEY'], { ...io, stdin })
  await untilWritten('stderr', /Value of API_KEY/)
  stdin.write('typed value\r')
  t.equal(await ended, 0)
  t.strictSame(plane.asked, [{ request: path, body: { value: 'typed value' } }])
  t.equal(written().stderr, 'Value of API_KEY (not shown): \n')
  t.notMatch(written().stdout, 'typed')
})

t.test('Ctrl+C at the question ends it as anywhere else, and complains of no value', async (t) => {
  const { plane, env } = await start(t, {})
  const { io, written, untilWritten } = captureIo(env)
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const interrupted = once(process, 'SIGINT')
  void run(['secret', 'set', 'shop', 'API_KEY'], { ...io, stdin })
  await untilWritten('stderr', /Value of API_KEY/)
  stdin.write('\u0003')
  await interrupted
  t.equal(written().stderr, 'Value of API_KEY (not shown): ')
  t.strictSame(plane.asked, [])
})

t.test('secrets are listed by key and deleted', async (t) => {
  const secrets = [{ key: 'API_KEY', createdAt: AT, updatedAt: AT }]
  const { plane, env } = await start(t, {
    'GET /v1/functions/shop/secrets': { secrets },
    'DELETE /v1/functions/shop/secrets/API_KEY': undefined,
  })
  t.match((await runCommand(['secret', 'list', 'shop'], { env })).stdout, /^KEY {6}CREATED {19}SET\nAPI_KEY {2}2026/)
  t.strictSame(JSON.parse((await runCommand(['secret', 'list', 'shop', '--json'], { env })).stdout), secrets)
  const argv = ['secret', 'delete', 'shop', 'API_KEY']
  t.match(await runCommand(argv, { env }), { stdout: `Deleted API_KEY of shop at ${plane.url}.\n` })
  const { stdout } = await runCommand([...argv, '--json'], { env })
  t.strictSame(JSON.parse(stdout), { deleted: 'API_KEY', function: 'shop', server: plane.url })
  plane.answers = { 'GET /v1/functions/shop/secrets': { secrets: [] } }
  t.match(await runCommand(['secret', 'list', 'shop'], { env }), { exitCode: 0, stdout: '', stderr: /carpool secret set shop/ })
})

t.test('functions are enabled and disabled', async (t) => {
  const { plane, env } = await start(t, {
    'POST /v1/functions/shop/enable': undefined,
    'POST /v1/functions/shop/disable': undefined,
  })
  t.match(await runCommand(['enable', 'shop'], { env }), { exitCode: 0, stdout: `Enabled shop at ${plane.url}.\n` })
  t.match(await runCommand(['disable', 'shop'], { env }), { exitCode: 0, stdout: `Disabled shop at ${plane.url}.\n` })
  const json = async (...argv: readonly string[]) => JSON.parse((await runCommand([...argv, '--json'], { env })).stdout)
  t.strictSame(await json('enable', 'shop'), { enabled: 'shop', server: plane.url })
  t.strictSame(await json('disable', 'shop', '--reason', 'it is slow'), { disabled: 'shop', server: plane.url })
  t.strictSame(
    plane.asked.map(({ body }) => body),
    [undefined, {}, undefined, { reason: 'it is slow' }],
  )
})

t.test('the audit log is a table; what was lost is a warning', async (t) => {
  const entries = [
    { time: AT, action: 'deployFunction', subject: 'shop', result: 'ok', tokenId: ID, owner: 'acme', remoteAddress: '127.0.0.1' },
    { time: AT, action: 'readAudit', result: 'unauthorized', remoteAddress: '::1', note: 'a\u001b[2Jb' },
  ]
  const { plane, env } = await start(t, { 'GET /v1/audit': { entries, lostEntries: 2 } })
  const { stdout, stderr, exitCode } = await runCommand(['audit', '-n', '2'], { env })
  t.equal(exitCode, 0)
  t.matchOnly(stdout.split('\n'), [
    /^TIME .*TOKEN .*OWNER .*ACTION .*SUBJECT .*RESULT .*FROM .*NOTE$/,
    /^2026-01-01T00:00:00.000Z {2}0123456789abcdef {2}acme {3}deployFunction {2}shop {5}ok {12}127\.0\.0\.1$/,
    /^2026-01-01T00:00:00.000Z {2}- .*readAudit .*- .*unauthorized {2}::1 {8}a\\u001b\[2Jb$/,
    '',
  ])
  t.equal(stderr, 'carpool: 2 entries could not be written since the server started.\n')
  t.strictSame(plane.asked[0]?.request, 'GET /v1/audit?limit=2')
  t.strictSame(JSON.parse((await runCommand(['audit', '--json'], { env })).stdout), { entries, lostEntries: 2 })
})
