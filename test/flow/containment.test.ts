/** What harms a host process: the function is found, the process replaced, and nobody else is any the worse for it. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { rowsOf } from '../support/ledger.ts'
import { startServer, until } from '../support/server.ts'

/** Nothing can interrupt it: V8 looks at every index. */
const STUCK = `export default { fetch() { [].includes.call({ length: 2 ** 53 - 1 }, 1); return new Response('never') } }`
const WAITING = `export default { async fetch(request) {
  const ms = Number(new URL(request.url).searchParams.get('ms'))
  await new Promise((resolve) => setTimeout(resolve, ms))
  return new Response('waited')
} }`

/** Answers `released` to all who have asked when it is told to. */
async function startBarrier(t: Test): Promise<{ readonly url: string; release(): Promise<void> }> {
  const asked: ServerResponse[] = []
  const barrier = createServer((_, response) => asked.push(response)).listen(0, '127.0.0.1')
  t.teardown(() => barrier.close())
  await once(barrier, 'listening')
  return {
    url: `http://127.0.0.1:${(barrier.address() as AddressInfo).port}/`,
    release: async () => {
      await until(async () => asked.length > 0)
      for (const response of asked) response.end('released')
    },
  }
}

/** Shared, by functions with names of their own. */
const server = await startServer(t, ['--max-hosts', '1', '--allow-egress', '127.0.0.1/32'])

t.test('what cannot be interrupted poisons its host: other calls end well, and another host takes its place', async (t) => {
  const barrier = await startBarrier(t)
  await server.deploy('stuck', STUCK, '--cpu-ms', '100')
  await server.deploy('waiting', WAITING)
  await server.deploy('held', `export default { fetch: () => fetch(${JSON.stringify(barrier.url)}) }`)
  const [host] = (await server.status()).hosts
  const beside = server.get('/held/', { method: 'POST' })
  const response = await server.get('/stuck/')
  t.match(await response.json(), { code: 'cpu-exceeded', status: 502 })
  const poisoned = await until(async () => (await server.status()).hosts.find(({ state }) => state === 'poisoned'))
  t.equal(poisoned.pid, host?.pid)
  t.equal(await (await server.get('/waiting/?ms=0')).text(), 'waited', 'the next host serves')
  await barrier.release()
  t.equal(await (await beside).text(), 'released', 'the poisoned host lives until its calls have ended')
  await until(async () => (await server.status()).hosts.every(({ pid }) => pid !== host?.pid))
  const [row] = await rowsOf(server, 'stuck')
  t.match(row, { outcome: 'cpu-exceeded', attempts: 1 })
  t.ok(Number(row?.['cpu_us']) >= 100_000 && Number(row?.['cpu_us']) <= 150_000, `billed ${String(row?.['cpu_us'])} µs`)
})

t.test('a call that never began in the host that its function has harmed begins in another', async (t) => {
  await server.deploy(
    'unbegun',
    `export default { async fetch(request) {
      if (request.url.endsWith('/stuck')) [].includes.call({ length: 2 ** 53 - 1 }, 1)
      return new Response(await request.text())
    } }`,
    '--cpu-ms',
    '100',
  )
  t.equal((await server.get('/unbegun/stuck')).status, 502)
  // The host waits for the isolate to come to its end before it makes another, and finds that it does not.
  t.equal(await (await server.get('/unbegun/', { method: 'POST', body: 'begun' })).text(), 'begun')
  t.match(
    (await rowsOf(server, 'unbegun')).find(({ outcome }) => outcome === 'ok'),
    { attempts: 1 },
  )
})

t.test('an offender gets a process of its own, then none; an operator may give it another chance', async (t) => {
  const flags = ['--quarantine-after', '1', '--disable-after', '2', '--max-hosts', '1', '--poisoned-drain-ms', '0']
  const server = await startServer(t, flags)
  await server.deploy('stuck', STUCK, '--cpu-ms', '100')
  await server.deploy('waiting', WAITING)
  const sharedPid = async (): Promise<number | undefined> =>
    (await server.status()).hosts.find(({ state, quarantineOf }) => /ready|saturated/.test(state) && quarantineOf === undefined)
      ?.pid
  const first = await sharedPid()
  t.match(await (await server.get('/stuck/')).json(), { code: 'cpu-exceeded' })
  const second = await until(async () => {
    const pid = await sharedPid()
    return pid !== first && pid
  })
  t.match(await (await server.get('/stuck/')).json(), { code: 'cpu-exceeded' })
  t.equal(await (await server.get('/waiting/?ms=0')).text(), 'waited')
  t.equal(await sharedPid(), second, 'the second time nobody else was in the process')
  const refused = await until(async () => {
    const response = await server.get('/stuck/')
    return response.status === 503 && response
  })
  const problem = (await refused.json()) as { code: string; detail: string }
  t.equal(problem.code, 'function-disabled')
  t.match(problem.detail, /2 host processes/)
  await server.json('enable', 'stuck')
  t.match(await (await server.get('/stuck/')).json(), { code: 'cpu-exceeded' })
})

const RECYCLINGS = [
  ['count', ['--host-max-invocations', '50', '--host-max-age-ms', '0']],
  ['age', ['--host-max-invocations', '0', '--host-max-age-ms', '1500']],
] as const

for (const [by, flags] of IS_WHOLE ? RECYCLINGS : RECYCLINGS.slice(0, 1)) {
  t.test(`hosts are replaced by ${by}, and no call fails for it`, async (t) => {
    const server = await startServer(t, [...flags, '--max-hosts', '1'])
    await server.deploy('waiting', WAITING)
    const pids = new Set<number>()
    let calls = 0
    await until(async () => {
      const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await server.get('/waiting/?ms=20')).status))
      calls += statuses.length
      if (statuses.some((status) => status !== 200)) t.fail(`after ${calls} calls: ${statuses.join()}`)
      for (const { pid } of (await server.status()).hosts) pids.add(pid)
      return pids.size >= 3
    })
    t.ok((await rowsOf(server, 'waiting')).every(({ outcome }) => outcome === 'ok'))
  })
}

t.test('an isolate that nears its memory limit is left before it is ended: no call fails', async (t) => {
  // One lets its memory be looked at often, by its CPU; the other fills it between two looks, and leaves garbage on the way.
  const kinds = { leak: 'let x = 0; for (let i = 0; i < 3e6; i++) x += i', spill: 'junk = new Uint8Array(2 ** 19).fill(2)' }
  for (const [name, step] of Object.entries(kinds)) {
    const code = `const kept = Array.from({ length: 1e5 }, (_, i) => ({ i })); const id = crypto.randomUUID(); let junk
      export default { fetch() { kept.push(new Uint8Array(2 ** 20).fill(1)); ${step}; return new Response(id) } }`
    await server.deploy(name, code, '--memory-mb', '64')
    const ids = new Set<string>()
    for (let call = 0; call < (IS_WHOLE ? 150 : 100); call++) {
      const response = await server.get(`/${name}/`)
      if (response.status !== 200) t.fail(`${name}, call ${call}: ${await response.text()}`)
      else ids.add(await response.text())
    }
    t.ok(ids.size > 1, `${name}: ${ids.size} isolates`)
  }
})
