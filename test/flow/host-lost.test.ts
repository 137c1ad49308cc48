/** A host process that dies is replaced, and its calls are answered at once. */
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { rowsOf } from '../support/ledger.ts'
import { startServer, until } from '../support/server.ts'

const WAITING = `
  let calls = 0
  export default {
    fetch(request) {
      if (request.url.endsWith('/calls')) return new Response(String(calls))
      calls++
      return new Promise(() => {})
    }
  }`

/** Hosts that are killed as fast as they come. */
const KILLS = IS_WHOLE ? 5 : 3

/** Shared; the last test that it is in kills it. Whoever takes the place of its host is the next one. */
const shared = await startServer(t, ['--max-hosts', '1'])

t.test('the calls of a killed host are answered host-lost, and the next call is served by a new host', async (t) => {
  const server = shared
  await server.deploy('waiting', WAITING)
  const calls = Array.from({ length: 20 }, () => server.get('/waiting/', { method: 'POST' }))
  await until(async () => (await (await server.get('/waiting/calls')).text()) === '20')
  const [host] = (await server.info()).hosts
  process.kill(host?.pid ?? 0, 'SIGKILL')
  for (const response of await Promise.all(calls)) {
    t.equal(response.status, 502)
    t.match(await response.json(), { code: 'host-lost' })
  }
  t.equal(await (await server.get('/waiting/calls')).text(), '0')
  const [replacement] = (await server.info()).hosts
  t.not(replacement?.pid, host?.pid)
})

t.test('several hosts share the calls; those of safe methods begin again in another, once, and have one record', async (t) => {
  const server = await startServer(t, ['--min-hosts', '2'])
  // What waits leaves room, so it takes calls that need the CPU to fill a host.
  const source = `const id = crypto.randomUUID(); export default { fetch() { let sum = 0; for (let i = 0; i < 2e7; i++) sum += i % 7; return new Response(id) } }`
  await server.deploy('spread', source)
  const ids = await Promise.all(Array.from({ length: 20 }, async () => (await server.get('/spread/')).text()))
  t.equal(new Set(ids).size, 2)

  await server.deploy(
    'twice',
    `const id = crypto.randomUUID()
    export default { async fetch(request) { console.log('began in ' + id); if (request.url.endsWith('/slow')) await new Promise((r) => setTimeout(r, 1500)); return new Response(id) } }`,
  )
  const slow = server.get('/twice/slow')
  const { msg } = await server.untilLogged('twice', /began in/)
  const first = msg.replace('began in ', '')
  // Which of the two it is in is told by who counts it.
  const [host] = (await server.info()).hosts.filter(({ inFlight }) => inFlight > 0)
  process.kill(host?.pid ?? 0, 'SIGKILL')
  const response = await slow
  t.equal(response.status, 200)
  t.not(await response.text(), first)
  t.match(await rowsOf(server, 'twice'), [{ outcome: 'ok', attempts: 2 }])
})

t.test('hosts that are killed again and again are replaced every time', async (t) => {
  const server = shared
  for (let round = 0; round < (IS_WHOLE ? 4 : 2); round++) {
    const [host] = await until(async () => {
      const { hosts } = await server.info()
      return hosts.some(({ state }) => state === 'ready') && hosts
    })
    process.kill(host?.pid ?? 0, 'SIGKILL')
    await until(async () => (await server.info()).hosts.every(({ pid }) => pid !== host?.pid))
    t.equal((await server.get('/waiting/calls')).status, 200)
  }
})

t.test('hosts that are killed as fast as they come never become more than there may be, and come back', async (t) => {
  // The one in reserve waits for a core that is not full, which tests beside this one may keep it from having.
  const full = ['--machine-full-percent', '100']
  const server = await startServer(t, ['--min-hosts', '1', '--max-hosts', '1', '--standby-hosts', '1', ...full])
  await server.deploy('waiting', WAITING)
  const killed = new Set<number>()
  let most = 0
  while (killed.size < KILLS) {
    const { hosts } = await server.info()
    most = Math.max(most, hosts.length)
    for (const { pid } of hosts) if (killed.size < KILLS && !killed.has(pid) && isKilled(pid)) killed.add(pid)
  }
  await until(async () => (await server.status()).state === 'ready')
  await until(async () => {
    const { hosts } = await server.info()
    most = Math.max(most, hosts.length)
    // The server may not have heard of the last death yet.
    return hosts.length === 2 && hosts.every(({ pid }) => !killed.has(pid))
  })
  t.ok(most <= 2, `${most} hosts at the same time`)
  t.equal((await server.get('/waiting/calls')).status, 200)
  t.ok((await server.status()).decisions.every(({ action }) => action === 'none'))
})

t.test('a host that stops answering is ended, and its calls are answered', async (t) => {
  const server = shared
  await server.deploy('brief', { 'index.js': WAITING, 'carpool.config.json': '{"timeoutMs": 500}' })
  const [host] = (await server.info()).hosts
  process.kill(host?.pid ?? 0, 'SIGSTOP')
  const response = await server.get('/brief/')
  t.equal(response.status, 502)
  t.match(await response.json(), { code: 'host-lost' })
  t.equal((await server.get('/brief/calls')).status, 200)
})

t.test('a host that is stuck with a call that may take long is replaced at once, and ended with it', async (t) => {
  const server = shared
  await server.deploy('long', { 'index.js': WAITING, 'carpool.config.json': '{"timeoutMs": 600000}' })
  const [host] = await until(async () => {
    const { hosts } = await server.status()
    return hosts.length === 1 && hosts
  })
  const call = server.get('/long/', { method: 'POST' })
  // One that has not begun would begin elsewhere.
  await until(async () => (await (await server.get('/long/calls')).text()) === '1')
  process.kill(host?.pid ?? 0, 'SIGSTOP')
  const states = await until(async () => {
    const { hosts } = await server.status()
    return hosts.length === 2 && hosts.map(({ state }) => state)
  })
  t.equal(states[0], 'poisoned')
  t.equal((await server.get('/long/calls')).status, 200)
  t.match(await (await call).json(), { code: 'host-lost' })
  await until(async () => !isAlive(host?.pid ?? 0))
})

t.test('host processes end with a server that is killed', async (t) => {
  const server = shared
  const [host] = (await server.info()).hosts
  await server.stop('SIGKILL')
  await until(async () => !isAlive(host?.pid ?? 0))
  t.pass()
})

/** One that has ended meanwhile is not. */
function isKilled(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
