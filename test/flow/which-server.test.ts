/** Which server a command means when several run on one machine and nobody names one. */
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { FunctionInfo } from '@carpool/core'
import { startCarpool, untilEnd } from '../support/command.ts'
import { startServer, temporaryFolder } from '../support/server.ts'

const HELLO = `export default { fetch: () => new Response('hello') }`

/** Two checkouts with a server each, and a folder that has nothing to do with them. */
async function startTwo(t: Test) {
  const root = temporaryFolder(t)
  const folder = (...path: readonly string[]): string => {
    const made = join(root, ...path)
    mkdirSync(made, { recursive: true })
    return made
  }
  const [stateDir, nowhere] = [folder('state'), folder('nowhere', 'in', 'particular')]
  const [one, two] = await Promise.all(
    ['one', 'two'].map((name) => startServer(t, [], join(folder('checkouts', name), '.carpool'), stateDir)),
  )
  if (one === undefined || two === undefined) throw new Error('Two servers were to be started.')
  const carpool = (cwd: string, ...args: readonly string[]) => untilEnd(startCarpool(args, { CARPOOL_STATE_DIR: stateDir }, cwd))
  const listed = async (cwd: string, ...args: readonly string[]): Promise<readonly string[]> => {
    const { code, stdout, stderr } = await carpool(cwd, 'list', '--json', ...args)
    t.equal(code, 0, stderr)
    return (JSON.parse(stdout) as readonly FunctionInfo[]).map(({ name }) => name)
  }
  return { folder, nowhere, stateDir, one, two, carpool, listed }
}

const { folder, nowhere, stateDir, one, two, carpool, listed } = await startTwo(t)

t.test('in a checkout its own server is meant, elsewhere none, and a URL wins', async (t) => {
  const code = one.write(HELLO)
  for (const [name, server] of Object.entries({ one, two })) {
    const deployed = await carpool(folder('checkouts', name, 'src', 'deep'), 'deploy', code, '--name', `of-${name}`)
    t.equal(deployed.code, 0, deployed.stderr)
    t.match(deployed.stdout, `${server.url}/of-${name}/`)
  }
  t.strictSame(await listed(folder('checkouts', 'one')), ['of-one'])
  t.strictSame(await listed(folder('checkouts', 'two', '.carpool', 'logs')), ['of-two'])

  const attempts = [
    [nowhere, 'deploy', code, '--name', 'lost'],
    [nowhere, 'logs', '--follow'],
    [folder('checkouts'), 'delete', 'of-one'],
    ['/', 'list'],
  ] as const
  for (const [cwd, ...args] of attempts) {
    const { code: exitCode, stdout, stderr } = await carpool(cwd, ...args)
    t.match({ exitCode, stdout }, { exitCode: 2, stdout: '' }, `${args[0]} in ${cwd}`)
    for (const { url, adminUrl, dataDir } of [one, two]) {
      t.match(stderr, new RegExp(`^${url} +${adminUrl} +${RegExp.escape(dataDir)} +\\d{4}-.*Z$`, 'm'))
    }
  }
  t.strictSame(await listed(nowhere, '--url', one.url), ['of-one'], 'nothing was changed')
  t.strictSame(await listed(folder('checkouts', 'one'), '--url', two.adminUrl), ['of-two'])

  const deleted = await carpool(folder('checkouts', 'one'), 'delete', 'of-one')
  t.match(deleted, { code: 0, stdout: `Deleted of-one at ${one.adminUrl}.\n`, stderr: '' })
  const called = await carpool(folder('checkouts', 'two'), 'invoke', 'of-two')
  t.match(called, { code: 0, stdout: 'hello', stderr: `Calling ${two.url}/of-two/\n` })

  await one.stop()
  t.strictSame(await listed(nowhere), ['of-two'], 'the only one is meant everywhere')
})

// Of the two, one is left.
t.test('a development server is nearest to nobody, for its data is in the temp folder', async (t) => {
  const args = ['dev', two.write({ 'index.js': HELLO }), '--port', '0', '--admin-port', '0', '--json']
  const dev = startCarpool(args, { CARPOOL_STATE_DIR: stateDir, TMPDIR: tmpdir() }, folder('fn'))
  const ended = untilEnd(dev)
  t.teardown(async () => {
    dev.kill('SIGTERM')
    await ended
  })
  const [line] = await new Promise<readonly string[]>((resolve) => {
    createInterface({ input: dev.stdout! }).once('line', (text) => resolve([text]))
  })
  const { adminUrl } = JSON.parse(line ?? '') as { adminUrl: string }
  const { code, stderr } = await carpool(tmpdir(), 'list')
  t.equal(code, 2)
  for (const url of [adminUrl, two.adminUrl]) t.match(stderr, url)
})
