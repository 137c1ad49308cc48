/** A deploy calls the handler once where nobody sees it, so that V8's code cache has what it runs. */
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startServer } from '../support/server.ts'

interface LogLine {
  readonly msg: string
}

const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])

/** What of a handler V8 compiles when it first runs. */
const COMPILED_WHEN_CALLED = `() => {
  ${Array.from({ length: 50 }, (_, index) => `const a${index} = { name: 'a${index}', of: [request, ${index}] }`).join('\n  ')}
}`

/** How much larger the code caches on the disk are after a deploy, in bytes. */
async function cachedBytesOf(name: string, handler: string): Promise<number> {
  const size = (): number =>
    readdirSync(server.dataDir, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.cache'))
      .reduce((sum, file) => sum + statSync(join(server.dataDir, file)).size, 0)
  const before = size()
  await server.deploy(name, `export default { async fetch(request) { const long = ${COMPILED_WHEN_CALLED}; ${handler} } }`)
  return size() - before
}

t.test('the code cache of a deploy has what its handler runs', async (t) => {
  const left = await cachedBytesOf('leaves', `if (request) return new Response(''); long()`)
  t.ok(left > 0)
  let ran = 0
  // A machine that is busy may take longer for the call than a deploy waits.
  for (let attempt = 0; attempt < 5 && ran <= left + 1_000; attempt++) {
    ran = await cachedBytesOf(`runs-${attempt}`, `long(); return new Response('')`)
  }
  t.ok(ran > left + 1_000, `${ran} bytes, and ${left} of one that is not called`)
})

t.test('nothing that the handler does at a deploy is seen', async (t) => {
  const paths: Array<string | undefined> = []
  const upstream = createServer((request, response) => {
    paths.push(request.url)
    response.end('pong')
  }).listen(0, '127.0.0.1')
  t.teardown(() => upstream.close())
  await once(upstream, 'listening')
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  await server.deploy(
    'counts',
    `await fetch('${origin}/module-scope')
    let calls = 0
    export default {
      async fetch(request, env, ctx) {
        calls++
        console.log('call', calls)
        ctx.waitUntil(fetch('${origin}/background'))
        setTimeout(() => fetch('${origin}/timer'), 0)
        await fetch('${origin}/handler', { method: 'POST', body: 'x' })
        return new Response(String(calls))
      },
    }`,
  )
  const deployed = [...paths]
  t.ok(deployed.length > 0)
  t.strictSame(
    deployed.filter((path) => path !== '/module-scope'),
    [],
  )
  t.strictSame(await server.json<LogLine[]>('logs', 'counts'), [])
  t.equal(await (await server.get('/counts/')).text(), '1')
  const lines = await server.json<LogLine[]>('logs', 'counts')
  t.strictSame(
    lines.map(({ msg }) => msg).filter((msg) => !msg.startsWith('report: ')),
    ['call 1'],
  )
  t.match(await server.json<object[]>('list'), [{ name: 'counts', invocations: 1 }])
})

for (const [name, handler] of Object.entries({
  loops: 'for (;;);',
  hogs: 'const all = []; for (;;) all.push(new Array(1_000).fill(all.length))',
  throws: `throw new Error('here')`,
  waits: 'await new Promise(() => {})',
  breaks: 'Promise.prototype.then = Object.prototype.toString = undefined; return {}',
})) {
  t.test(`a handler that ${name} is deployed, and is not to blame for that`, async (t) => {
    await server.deploy(name, `export default { async fetch() { ${handler} } }`)
    t.match(
      (await server.json<Array<{ name: string; state: string }>>('list')).filter((one) => one.name === name),
      [{ state: 'active', failures: 0 }],
    )
  })
}

t.test('a deploy does not wait for a handler that computes for long', async (t) => {
  const folder = server.write({
    'index.js': 'export default { fetch() { for (;;); } }',
    'carpool.config.json': '{"cpuMs": 60000, "timeoutMs": 120000}',
  })
  const deployed = server.carpool('deploy', folder, '--name', 'computes')
  t.match(await Promise.race([deployed, delay(30_000, { code: 'late' }, { ref: false })]), { code: 0 })
})
