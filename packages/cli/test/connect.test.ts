import { announceServer } from '@carpool/server/discovery'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { infoOf, startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'

const DATA_PLANE = 'http://127.0.0.1:3999'

async function startAnnounced(t: Test) {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_STATE_DIR: t.testdir() }
  const server = { url: DATA_PLANE, adminUrl: plane.url, token: TOKEN, pid: process.pid, dataDir: '/data' }
  const announcement = announceServer(server, env)
  t.teardown(() => announcement.withdraw())
  return { plane, env }
}

t.test('a server of this machine is found without flags', async (t) => {
  const { env } = await startAnnounced(t)
  t.match(await runCommand(['list', '--json'], { env }), { exitCode: 0, stdout: '[]\n' })
})

t.test('a server of this machine is reached by either of its URLs, without a token', async (t) => {
  const { env, plane } = await startAnnounced(t)
  for (const url of [DATA_PLANE, `${DATA_PLANE}/`, DATA_PLANE.replace('127.0.0.1', 'localhost'), plane.url, plane.url.slice(7)]) {
    t.match(await runCommand(['list', '--json', '--url', url], { env }), { exitCode: 0, stdout: '[]\n' }, url)
    t.match(await runCommand(['list', '--json'], { env: { ...env, CARPOOL_URL: url } }), { exitCode: 0 }, url)
  }
})

t.test('a token meant for another server does not hide the right one, but one on the command line counts', async (t) => {
  const { env, plane } = await startAnnounced(t)
  t.equal((await runCommand(['list'], { env: { ...env, CARPOOL_TOKEN: 'other' } })).exitCode, 0)
  t.match(await runCommand(['list', '--token', 'other'], { env }), {
    exitCode: 1,
    stderr: `carpool: The token is not right. (server: ${plane.url})\n`,
  })
})

t.test('a token that was made for somebody says as who one acts, also on the machine of the server', async (t) => {
  const { env, plane } = await startAnnounced(t)
  const refused = { exitCode: 1, stderr: `carpool: The token is not right. (server: ${plane.url})\n` }
  t.match(await runCommand(['list'], { env: { ...env, CARPOOL_TOKEN: 'cpt_1_x' } }), refused)
  t.match(await runCommand(['list', '--url', plane.url], { env: { ...env, CARPOOL_TOKEN: 'cpt_1_x' } }), refused)
  const other = { ...env, CARPOOL_TOKEN: 'cpt_1_x', CARPOOL_URL: 'https://carpool.example' }
  t.match(
    await runCommand(['list', '--url', plane.url], { env: other }),
    { exitCode: 0 },
    'but not one that is meant for another',
  )
})

t.test('the token of the environment goes to the server that it is meant for alone', async (t) => {
  const seen: Array<string | undefined> = []
  const other = createServer(({ headers }, response) => {
    seen.push(headers.authorization)
    response.end('{"functions":[]}')
  }).listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const list = (...environment: object[]) =>
    runCommand(['list', '--url', `${url}/`], { env: Object.assign({ CARPOOL_TOKEN: 'of-another' }, ...environment) })
  await list({ CARPOOL_URL: 'https://carpool.example' })
  await list({ CARPOOL_URL: 'https://carpool.example', CARPOOL_TOKEN: 'cpt_1_x' })
  await list({ CARPOOL_URL: url })
  await list()
  t.strictSame(seen, [undefined, undefined, 'Bearer of-another', 'Bearer of-another'])
})

t.test('flags win over the environment', async (t) => {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: 'http://127.0.0.1:9', CARPOOL_TOKEN: 'other' }
  t.equal((await runCommand(['list', '--url', plane.url, '--token', TOKEN], { env })).exitCode, 0)
})

/** Announces servers of these data folders beside each other, each with a control plane of its own. */
async function startSeveral(t: Test, ...dataDirs: readonly string[]) {
  const env = { CARPOOL_STATE_DIR: t.testdir() }
  const planes = await Promise.all(
    dataDirs.map(async (dataDir, index) => {
      const plane = await startControlPlane(t)
      plane.functions.set(`of-${index}`, infoOf(`of-${index}`))
      // The port that a server has by default says nothing.
      const url = `http://127.0.0.1:${8080 - index}`
      t.teardown(announceServer({ url, adminUrl: plane.url, token: TOKEN, pid: process.pid, dataDir }, env).withdraw)
      return plane
    }),
  )
  return { env, planes }
}

t.test('of several servers the one of the folder is meant', async (t) => {
  const { env, planes } = await startSeveral(t, '/work/.carpool', '/work/app/.carpool')
  const functionsIn = async (cwd: string) => (await runCommand(['list', '--json'], { env, cwd })).stdout
  t.match(await functionsIn('/work/other'), '"name":"of-0"')
  for (const cwd of ['/work/app', '/work/app/src']) t.match(await functionsIn(cwd), '"name":"of-1"')
  const { stdout } = await runCommand(['delete', 'of-1', '--json'], { env, cwd: '/work/app' })
  t.strictSame(JSON.parse(stdout), { deleted: 'of-1', server: planes[1]?.url })
})

t.test('if the folder does not tell, they are listed and nothing is done', async (t) => {
  const { env, planes } = await startSeveral(t, '/work/one', '/work/two')
  const commands = [
    ['deploy', '.'],
    ['list'],
    ['invoke', 'of-0'],
    ['logs'],
    ['logs', '--follow'],
    ['invocations'],
    ['usage'],
    ['bill'],
    ['status'],
    ['status', '--watch'],
    ['delete', 'of-0'],
    ['enable', 'of-0'],
    ['disable', 'of-0'],
    ['secret', 'set', 'of-0', 'KEY'],
    ['secret', 'list', 'of-0'],
    ['secret', 'delete', 'of-0', 'KEY'],
    ['token', 'create', '--owner', 'a', '--scope', 'read'],
    ['token', 'list'],
    ['token', 'revoke', '0123456789abcdef'],
    ['audit'],
  ]
  const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'
  for (const args of commands) {
    for (const cwd of ['/work', '/', '/elsewhere']) {
      const { exitCode, stdout, stderr } = await runCommand(args, { env, cwd })
      t.match({ exitCode, stdout }, { exitCode: 2, stdout: '' }, args.join(' '))
      const lines = stderr.split('\n')
      t.match(lines[0], /^SERVER +CONTROL PLANE +DATA FOLDER +STARTED$/)
      for (const [index, name] of ['one', 'two'].entries()) {
        const row = new RegExp(
          `^http://127\\.0\\.0\\.1:${8080 - index} +${RegExp.escape(planes[index]?.url ?? '')} +/work/${name} +${time}$`,
        )
        t.ok(
          lines.slice(1, 3).some((line) => row.test(line)),
          stderr,
        )
      }
      t.match(lines[3], /^carpool: 2 servers run on this machine, and this folder .* --url or CARPOOL_URL\. See: carpool --help$/)
      t.equal(lines.length, 5)
    }
  }
  const { exitCode, stdout } = await runCommand(['delete', 'of-0', '--json'], { env, cwd: '/work' })
  t.equal(exitCode, 2)
  const { error } = JSON.parse(stdout) as { error: { code: string; servers: ReadonlyArray<Record<string, unknown>> } }
  t.equal(error.code, 'usage')
  t.match(
    error.servers.toSorted((a, b) => String(a['dataDir']).localeCompare(String(b['dataDir']))),
    [
      {
        url: 'http://127.0.0.1:8080',
        adminUrl: planes[0]?.url,
        dataDir: '/work/one',
        startedAt: new RegExp(time),
        pid: process.pid,
      },
      { url: 'http://127.0.0.1:8079', adminUrl: planes[1]?.url, dataDir: '/work/two' },
    ],
  )
  t.notMatch(stdout, TOKEN, 'no token is shown')
  for (const [index, plane] of planes.entries()) t.ok(plane.functions.has(`of-${index}`))
})

t.test('who names one of several gets that one, by flag or environment, whatever the folder', async (t) => {
  const { env, planes } = await startSeveral(t, '/work/one', '/work/two')
  for (const [index, plane] of planes.entries()) {
    for (const url of [plane.url, `localhost:${8080 - index}`]) {
      const named = `"name":"of-${index}"`
      t.match(await runCommand(['list', '--json', '--url', url], { env, cwd: '/work/two' }), {
        exitCode: 0,
        stdout: new RegExp(named),
      })
      t.match((await runCommand(['list', '--json'], { env: { ...env, CARPOOL_URL: url } })).stdout, named)
    }
  }
  t.equal((await runCommand(['list', '--url', 'http://127.0.0.1:9'], { env, cwd: '/work/one' })).exitCode, 1, 'and no other')
})

t.test('what is called is named by its URL on a server of this machine', async (t) => {
  const { env } = await startSeveral(t, '/work/one')
  const { stderr } = await runCommand(['invoke', 'of-0', '--path', 'a?b=c'], { env })
  t.equal(stderr, 'Calling http://127.0.0.1:8080/of-0/a\n', 'without the query, which may have secrets in it')
  const named = await runCommand(['list', '--url', 'http://me:hidden@127.0.0.1:8081'], { env })
  t.equal(named.exitCode, 2)
  t.match(named.stderr, '--url must have no name or password in it')
  t.notMatch(named.stderr, 'hidden')
})

t.test('if no server runs here, the error says how to start one', async (t) => {
  const { exitCode, stdout, stderr } = await runCommand(['list', '--json'])
  t.equal(exitCode, 1)
  t.match(stderr, /^carpool: No server runs on this machine; start one with: carpool serve/)
  t.match(JSON.parse(stdout), { error: { code: 'unreachable', status: 503 } })
})

t.test('if nothing listens, the error says where and how to start one', async (t) => {
  const vacated = createTcpServer().listen(0, '127.0.0.1')
  await once(vacated, 'listening')
  const { port } = vacated.address() as AddressInfo
  vacated.close()
  await once(vacated, 'close')
  const { exitCode, stderr } = await runCommand(['list', '--url', `http://127.0.0.1:${port}`])
  t.equal(exitCode, 1)
  t.equal(stderr, `carpool: Nothing listens at http://127.0.0.1:${port}; start a server with: carpool serve\n`)
})

t.test('a remote server without a token is not even asked', async (t) => {
  const { exitCode, stdout, stderr } = await runCommand(['list', '--json', '--url', 'https://carpool.example'])
  t.equal(exitCode, 1)
  t.match(stderr, /^carpool: A token is needed for https:\/\/carpool\.example: .* --token or CARPOOL_TOKEN\.\n$/)
  t.match(JSON.parse(stdout), { error: { code: 'unauthorized' } })
})

t.test('something else that answers is distinguished from a control plane', async (t) => {
  const other = createServer((_, response) => response.writeHead(404).end('<h1>Not here</h1>')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const { exitCode, stderr } = await runCommand(['list', '--url', `http://127.0.0.1:${port}`])
  t.equal(exitCode, 1)
  t.match(stderr, 'is no control plane of Carpool')
})

t.test('a server that hangs up in the middle is unreachable', async (t) => {
  const broken = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"func', () => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(broken, 'listening')
  t.teardown(() => broken.close())
  const { port } = broken.address() as AddressInfo
  const { exitCode, stderr } = await runCommand(['list', '--url', `http://127.0.0.1:${port}`])
  t.equal(exitCode, 1)
  t.match(stderr, 'hung up in the middle of its answer')
})
