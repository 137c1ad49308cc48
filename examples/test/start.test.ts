import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../../test/support/form.ts'
import { outputUntil, startNode } from './support/start-node.ts'

const SCRIPT = join(import.meta.dirname, '../serve/start.ts')

t.test('npm start serves the examples, and what it says to try works', async (t) => {
  const folder = t.testdir()
  for (const run of IS_WHOLE ? ['first', 'second'] : ['first']) {
    t.test(`the ${run} run in a data folder`, async (t) => {
      const script = start(t, folder)
      const output = await outputUntil(script, 'Ctrl+C')
      const lines = output.split('\n').filter((line) => line.includes('http'))
      t.equal(lines.length, 7)
      t.equal(output.split('\n').filter((line) => /^Sandbox: (all 13|\d+ of 13) layers are on\./.test(line)).length, 1)
      const answers = lines.map(async (line) => {
        const { url, ...init } = requestOf(line)
        const response = await fetch(url, init)
        t.equal(response.status, 200, `${init.method} ${url}: ${await response.text()}`)
      })
      await Promise.all(answers)
      script.kill('SIGINT')
      t.strictSame(await once(script, 'exit'), [0, null])
    })
  }
})

t.test('npm start says which port is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const script = start(t, t.testdir(), '--port', String(port))
  const [errors, [exitCode]] = await Promise.all([text(script.stderr), once(script, 'exit')])
  t.equal(exitCode, 1)
  t.match(errors, `npm start: 127.0.0.1:${port} (--port)`)
  t.match(errors, 'npm start -- --port 0 --admin-port 0')
})

function start(t: Test, folder: string, ...more: readonly string[]) {
  const flags = ['--port', '0', '--admin-port', '0', '--data', `${folder}/data`, ...more]
  return startNode(t, [SCRIPT, ...flags], { CARPOOL_STATE_DIR: `${folder}/state`, CARPOOL_STANDBY_HOSTS: '0' })
}

/** The request that a printed line of curl makes, as far as those lines go. */
function requestOf(line: string): { url: string; method: string; body?: string } {
  const [, ...args] = [...line.slice(line.indexOf('curl ')).matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)
  const after = (flag: string) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined)
  const body = after('-d')
  const method = after('-X') ?? (body === undefined ? 'GET' : 'POST')
  return { url: args.at(-1) ?? '', method, ...(body !== undefined && { body }) }
}
