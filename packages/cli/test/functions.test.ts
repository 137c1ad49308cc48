import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { infoOf, startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'

t.test('list prints an aligned table', async (t) => {
  const plane = await startControlPlane(t)
  for (const name of ['a', 'longer-name']) plane.functions.set(name, infoOf(name))
  const { exitCode, stdout, stderr } = await runCommand(['list', '--url', plane.url, '--token', TOKEN])
  t.equal(exitCode, 0)
  t.equal(stderr, '')
  t.matchOnly(stdout.split('\n'), [
    /^NAME {9}OWNER {4}STATE {3}REVISION {10}DEPLOYED/,
    /^a {12}default {2}active {2}0123456789abcdef {2}2026-01-01T00:00:00.000Z {2}2 KiB {5}12 {7}0 {2}http:\/\/127\.0\.0\.1:8080\/a\/$/,
    /^longer-name {2}default {2}active {2}0123456789abcdef/,
    '',
  ])
})

t.test('list says why a function is disabled', async (t) => {
  const plane = await startControlPlane(t)
  plane.functions.set('a', { ...infoOf('a'), state: 'disabled', reason: 'it mines coins' })
  const { stdout, stderr } = await runCommand(['list', '--url', plane.url, '--token', TOKEN])
  t.match(stdout, /^a {5}default {2}disabled {2}0123456789abcdef/m)
  t.equal(stderr, 'a is disabled because it mines coins.\n')
})

t.test('list --json prints one array, an empty one too', async (t) => {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  t.strictSame(await runCommand(['list', '--json'], { env }), {
    exitCode: 0,
    stdout: '[]\n',
    stdoutBytes: Buffer.from('[]\n'),
    stderr: '',
  })
  plane.functions.set('a', infoOf('a'))
  t.strictSame(JSON.parse((await runCommand(['list', '--json'], { env })).stdout), [infoOf('a')])
})

t.test('list says so if there is nothing, and not on stdout', async (t) => {
  const plane = await startControlPlane(t)
  const { stdout, stderr } = await runCommand(['list', '--url', plane.url, '--token', TOKEN])
  t.equal(stdout, '')
  t.match(stderr, 'carpool deploy')
})

t.test('delete takes a function down', async (t) => {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  for (const name of ['a', 'b']) plane.functions.set(name, infoOf(name))
  t.match(await runCommand(['delete', 'a'], { env }), { exitCode: 0, stdout: `Deleted a at ${plane.url}.\n`, stderr: '' })
  const { stdout, stderr } = await runCommand(['delete', 'b', '--json'], { env })
  t.strictSame(JSON.parse(stdout), { deleted: 'b', server: plane.url })
  t.equal(stderr, '')
  t.equal(plane.functions.size, 0)
})

t.test('what the server refuses is reported in its words, and which server it was, with exit code 1', async (t) => {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  const failed = await runCommand(['delete', 'none', '--json'], { env })
  t.equal(failed.exitCode, 1)
  const detail = `There is no function none. (server: ${plane.url})`
  t.equal(failed.stderr, `carpool: ${detail}\n`)
  t.match(JSON.parse(failed.stdout), {
    error: { type: 'urn:carpool:error:not-found', status: 404, code: 'not-found', detail },
  })
})

t.test('a name that cannot be one is refused before it is sent', async (t) => {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  for (const argv of [
    ['delete', '..'],
    ['invoke', 'Bad/Name'],
    ['logs', 'Ü'],
  ]) {
    const { exitCode, stderr } = await runCommand(argv, { env })
    t.equal(exitCode, 1)
    t.match(stderr, /^carpool: .* is no function name/)
  }
  t.strictSame([...plane.invocations, ...plane.logQueries], [])
})

t.test('a detail of several lines becomes one', async (t) => {
  const { Output } = await import('../src/output.ts')
  const { captureIo } = await import('./support/run-command.ts')
  const { io, written } = captureIo()
  t.equal(new Output(io, false).fail(new CarpoolError('bundle-failed', 'a.ts:1:2: one\n  b.ts:3:4: two\n')), 1)
  t.equal(written().stderr, 'carpool: a.ts:1:2: one; b.ts:3:4: two\n')
})
