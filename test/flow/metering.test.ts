/** What an invocation used, and where that can be read. */
import type { InvocationRecord, LogLine } from '@carpool/core'
import t, { type Test } from 'tap'
import { readThreadTimes } from '../../bench/src/lib/thread-table.ts'
import { backgroundRowsOf, rowsOf } from '../support/ledger.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

const FINE = 'export default { fetch: () => new Response("fine") }'
/** Takes some 30 ms of CPU on the machine that this was written on. */
const WORK = 'let x = 0; for (let i = 0; i < 30_000_000; i++) x = (x * 31 + i) | 0; globalThis.x = x;'

async function call(t: Test, server: TestServer, path: string): Promise<{ status: number; id: string; headers: Headers }> {
  const response = await server.get(path)
  await response.arrayBuffer()
  const id = response.headers.get('x-carpool-invocation') ?? ''
  t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/, `${path} has an id`)
  return { status: response.status, id, headers: response.headers }
}

/** One that most tests share, with functions of their own. */
const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])

t.test('an answer says where its time went; its record and its report say the same', async (t) => {
  await server.deploy('work', `export default { fetch() { ${WORK} return new Response('done') } }`)
  const { id, headers } = await call(t, server, '/work/')
  const timing = headers.get('server-timing') ?? ''
  t.match(timing, /^queue;dur=[\d.]+, init;dur=0, cpu;dur=[\d.]+, exec;dur=[\d.]+$/)
  const [record] = await server.json<InvocationRecord[]>('invocations', 'work')
  t.match(record, {
    id,
    functionName: 'work',
    outcome: 'ok',
    status: 200,
    start: 'warm',
    attempts: 1,
    bytesOut: 4,
    memoryMb: 256,
  })
  t.ok(record !== undefined && record.cpuUs > 5_000 && record.cpuUs <= record.wallUs, `${record?.cpuUs} µs of CPU`)
  t.ok(record !== undefined && record.memoryPeakKb > 100, `${record?.memoryPeakKb} KiB`)
  t.ok(timing.includes(`cpu;dur=${(record?.cpuUs ?? 0) / 1000},`))
  const lines = await server.json<LogLine[]>('logs', 'work')
  const reports = lines.filter(({ invocationId, msg }) => invocationId === id && msg.startsWith('report: '))
  t.equal(reports.length, 1)
  t.match(
    reports[0]?.msg,
    /^report: ok 200 in .* ms; exec .* ms; billed \d+ ms; cpu .* ms; queue .* ms; init .* ms; memory 256 MiB, peak \d+ MiB; warm$/,
  )

  t.equal((await call(t, server, '/nobody/')).status, 404)
  t.equal((await call(t, server, '/')).status, 404)
})

/** What each function has used, by its name. */
async function usageRows(): Promise<ReadonlyArray<{ key: string; cpuUs: number; backgroundCpuUs: number }>> {
  return (await server.json<{ rows: Array<{ key: string; cpuUs: number; backgroundCpuUs: number }> }>('usage')).rows
}

/** CPU time of the threads of a host that run isolates, in ms. Those of libuv, which are in it, have next to nothing to do. */
function isolateThreadsMs(pid: number): number {
  return (readThreadTimes(pid)?.others ?? 0) * 1000
}

t.test('the garbage that functions make is collected on their bills', async (t) => {
  const code = `
    const kept = new Map()
    export default {
      fetch() {
        for (let i = 0; i < 10_000; i++) kept.set((Math.random() * 100_000) | 0, { i, s: [i, i] })
        return new Response('kept')
      },
    }`
  const names = ['garbage', 'rubbish']
  for (const name of names) await server.deploy(name, code)
  const callOften = async (times: number): Promise<void> => {
    for (let count = 0; count < times; count++) await (await server.get(`/${names[count % 2]}/`)).arrayBuffer()
  }
  await callOften(50)
  const { pid = 0 } = (await server.info()).hosts[0] ?? {}
  const billedMs = async (): Promise<number> => {
    await server.recorded()
    const rows = await usageRows()
    const mine = rows.filter(({ key }) => names.includes(key))
    return mine.reduce((us, { cpuUs, backgroundCpuUs }) => us + cpuUs + backgroundCpuUs, 0) / 1000
  }
  const [usedBeforeMs, billedBeforeMs] = [isolateThreadsMs(pid), await billedMs()]
  await callOften(500)
  const usedMs = isolateThreadsMs(pid) - usedBeforeMs
  // What is not of one call is reported now and then.
  const billed = await until(async () => {
    const ms = (await billedMs()) - billedBeforeMs
    return ms > 0.9 * usedMs && ms
  })
  t.ok(billed < 1.1 * usedMs, `${billed} of ${usedMs} ms are billed`)
})

t.test('what V8 does between the entries of small functions is not worth a row at each report', async (t) => {
  const names = Array.from({ length: 8 }, (_, index) => `small-${index}`)
  for (const name of names) await server.deploy(name, FINE)
  const callAll = async (rounds: number): Promise<number> => {
    for (let round = 0; round < rounds; round++) {
      for (const name of names) await (await server.get(`/${name}/`)).arrayBuffer()
    }
    return (await Promise.all(names.map((name) => backgroundRowsOf(server, name)))).flat().length
  }
  // Starts have some.
  const before = await callAll(50)
  const rows = (await callAll(100)) - before
  t.ok(rows <= names.length, `${rows} rows`)
})

t.test('a start is told by what was there', async (t) => {
  const server = await startServer(t, ['--max-isolates', '1'])
  for (const name of ['one', 'two']) await server.deploy(name, FINE)
  // Only one of them fits, so each call makes the other one leave.
  for (const path of ['/one/', '/one/', '/two/', '/one/']) await call(t, server, path)
  const [host] = (await server.info()).hosts
  process.kill(host?.pid ?? 0, 'SIGKILL')
  await until(async () => (await server.info()).hosts.some(({ id, state }) => id !== host?.id && state === 'ready'))
  await call(t, server, '/one/')
  const rows = await rowsOf(server, 'one')
  t.strictSame(
    rows.map(({ start }) => start),
    ['function-cold', 'warm', 'isolate-cold', 'host-cold'],
  )
  for (const { start, init_us, init_cpu_us } of rows) {
    t.equal(Number(init_us) > 0, start !== 'warm', `${start} took ${init_us} µs`)
    t.equal(Number(init_cpu_us) > 0, start !== 'warm', `${start} took ${init_cpu_us} µs of CPU`)
  }
  const metrics = await (await fetch(`${server.adminUrl}/metrics`)).text()
  for (const kind of ['function-cold', 'host-cold', 'isolate-cold']) {
    t.match(metrics, new RegExp(`faas_coldstarts_total\\{function="one",trigger="http",kind="${kind}"\\} 1\\n`))
  }
})

t.test('an endless loop is ended at its CPU limit, and those who share the isolate are not', async (t) => {
  const code = `
    let spins = 0
    export default {
      async fetch(request) {
        if (request.url.endsWith('/spin')) for (;;) spins++
        await new Promise((resolve) => setTimeout(resolve, 100))
        return new Response('slept')
      },
    }`
  await server.deploy('mixed', code, '--cpu-ms', '50')
  const answers = await Promise.all(
    ['/a', '/b', '/spin', '/c', '/d'].map(async (path) => {
      const response = await server.get(`/mixed${path}`)
      return [
        path,
        response.status,
        response.status === 200 ? await response.text() : ((await response.json()) as { code: string }).code,
      ]
    }),
  )
  t.strictSame(answers, [
    ['/a', 200, 'slept'],
    ['/b', 200, 'slept'],
    ['/spin', 502, 'cpu-exceeded'],
    ['/c', 200, 'slept'],
    ['/d', 200, 'slept'],
  ])
  const rows = await rowsOf(server, 'mixed')
  t.equal(rows.length, 5)
  const [over] = rows.filter(({ outcome }) => outcome === 'cpu-exceeded')
  t.ok(Number(over?.['cpu_us']) >= 50_000 && Number(over?.['cpu_us']) <= 100_000, `billed ${over?.['cpu_us']} µs`)
})

t.test('what had an effect outside is never begun twice', async (t) => {
  const code = `export default {
    async fetch(request) {
      if (request.url.endsWith('/spin')) for (;;);
      console.log('effect')
      await new Promise(() => {})
    },
  }`
  await server.deploy('effect', code, '--cpu-ms', '50')
  const waiting = server.get('/effect/wait')
  await server.untilLogged('effect', /"msg":"effect"/)
  t.equal((await server.get('/effect/spin')).status, 502)
  t.match(await (await waiting).json(), { code: 'isolate-lost' })
  t.match(
    (await rowsOf(server, 'effect')).find(({ outcome }) => outcome === 'isolate-lost'),
    { attempts: 1 },
  )
})

t.test("work that nobody waits for is the function's, not the invocation's", async (t) => {
  const code = `export default {
    fetch(request, env, ctx) {
      ctx.waitUntil(new Promise((resolve) => setTimeout(() => { ${WORK} console.log('worked'); resolve() }, 50)))
      return new Response('early')
    },
  }`
  await server.deploy('behind', code)
  await server.get('/behind/')
  await server.untilLogged('behind', /"msg":"worked"/)
  const used = await until(async () => {
    const rows = await usageRows()
    const row = rows.find(({ key }) => key === 'behind')
    return row !== undefined && row.backgroundCpuUs > 5_000 && row
  })
  t.ok(used.cpuUs < 5_000, `${used.cpuUs} µs for the answer, ${used.backgroundCpuUs} µs behind it`)
})

t.test('a loop that nobody waits for is ended as well', async (t) => {
  const code = `let calls = 0
  export default {
    fetch() {
      if (++calls === 1) setTimeout(() => { for (;;); }, 1)
      return new Response(String(calls))
    },
  }`
  await server.deploy('runaway', code, '--cpu-ms', '50')
  t.equal(await (await server.get('/runaway/')).text(), '1')
  // Whoever comes waits until the loop is ended, and finds a new isolate.
  await until(async () => (await (await server.get('/runaway/')).text()) === '1')
  const statuses = (await rowsOf(server, 'runaway')).map(({ outcome }) => outcome)
  t.ok(
    statuses.every((outcome) => outcome === 'ok'),
    statuses.join(),
  )
})

t.test('the calls in a host that is killed have one record each, with what was last seen', async (t) => {
  const server = await startServer(t)
  await server.deploy('held', `export default { async fetch() { ${WORK} console.log('worked'); await new Promise(() => {}) } }`)
  const calls = Array.from({ length: 5 }, () => server.get('/held/', { method: 'POST' }))
  for (let index = 0; index < 5; index++) await server.untilLogged('held', /"msg":"worked"/)
  const [host] = (await server.info()).hosts
  // Hosts tell four times a second what is under way.
  await until(async () => {
    const metrics = await (await fetch(`${server.adminUrl}/metrics`)).text()
    return Number(/unattributed"\} ([\d.]+)/.exec(metrics)?.[1]) > 0.02
  })
  process.kill(host?.pid ?? 0, 'SIGKILL')
  for (const response of await Promise.all(calls)) t.match(await response.json(), { code: 'host-lost', status: 502 })
  const rows = await rowsOf(server, 'held')
  t.equal(rows.length, 5)
  t.ok(rows.every(({ outcome }) => outcome === 'host-lost'))
  t.ok(
    rows.some(({ cpu_us }) => Number(cpu_us) > 5_000),
    rows.map(({ cpu_us }) => cpu_us).join(),
  )
})

t.test('bytes are counted in both directions', async (t) => {
  await server.deploy('echo', 'export default { async fetch(request) { return new Response(await request.text()) } }')
  const code = `export default { async fetch() {
    const response = await fetch(${JSON.stringify(`${server.url}/echo/`)}, { method: 'POST', body: 'x'.repeat(1000) })
    return new Response((await response.text()).slice(0, 7))
  } }`
  await server.deploy('relay', code)
  t.equal(await (await server.get('/relay/', { method: 'POST', body: '12345' })).text(), 'xxxxxxx')
  t.match((await rowsOf(server, 'relay'))[0], { bytes_in: 5, bytes_out: 7, egress_bytes_out: 1000, egress_bytes_in: 1000 })
  t.match((await rowsOf(server, 'echo'))[0], { bytes_in: 1000, bytes_out: 1000, egress_bytes_out: 0, egress_bytes_in: 0 })
})

t.test('what an entry runs on after its client has left is on the bill of its call', async (t) => {
  await server.deploy('left', {
    'index.js': `export default {
      fetch() {
        console.log('begun')
        for (let times = 0; times < 20; times++) { ${WORK} }
        return new Response('')
      }
    }`,
    'carpool.config.json': '{"cpuMs": 20000}',
  })
  const whole = await call(t, server, '/left/')
  const controller = new AbortController()
  const left = server.get('/left/', { signal: controller.signal })
  await until(async () => (await server.json<LogLine[]>('logs', 'left')).filter(({ msg }) => msg === 'begun').length === 2)
  controller.abort()
  await t.rejects(left)
  const records = await until(async () => {
    const found = await server.json<InvocationRecord[]>('invocations', 'left')
    return found.length === 2 && found
  })
  const [answered, canceled] = [records.find(({ id }) => id === whole.id), records.find(({ outcome }) => outcome === 'canceled')]
  const [wholeUs, leftUs] = [answered?.cpuUs ?? 0, canceled?.cpuUs ?? 0]
  t.ok(leftUs > wholeUs * 0.6, `${leftUs} µs, ${wholeUs} µs for the one that is answered`)
  const rows = await usageRows()
  const background = rows.find(({ key }) => key === 'left')?.backgroundCpuUs ?? 0
  t.ok(background < wholeUs * 0.1, `${background} µs behind its answers`)
})
