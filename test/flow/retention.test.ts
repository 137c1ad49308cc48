/** Isolates stay for as long as there is memory for them, the least recently used leave first, and chosen ones stay. */
import t from 'tap'
import { startServer, until } from '../support/server.ts'

const COUNTING = `let calls = 0; export default { fetch: () => new Response(String(++calls)) }`
/** Holds about 40 MB. */
const HOLDING = `const held = new Array(5_000_000).fill(0.5); export default { fetch: () => new Response(String(held.length)) }`

t.test('a function that is kept warm stays while others leave, and is up in a new host before it is called', async (t) => {
  const server = await startServer(t, ['--max-isolates', '2', '--keep-warm', 'kept'])
  for (const name of ['kept', 'a', 'b']) await server.deploy(name, COUNTING)
  const call = async (name: string): Promise<string> => (await server.get(`/${name}/`)).text()
  t.equal(await call('kept'), '1')
  for (const name of ['a', 'b', 'a', 'b']) t.equal(await call(name), '1')
  t.equal(await call('kept'), '2')
  const [host] = (await server.status()).hosts
  process.kill(host?.pid ?? 0, 'SIGKILL')
  await until(async () => (await server.status()).hosts.some(({ pid, isolates }) => pid !== host?.pid && isolates === 1))
  t.equal(await call('kept'), '1')
  const [newest] = await server.json<Array<{ functionName: string; start: string }>>('invocations', 'kept', '-n', '1')
  t.match(newest, { functionName: 'kept', start: 'warm' })
})

t.test('idle isolates leave when the host takes more than its share of memory, and come back when they are called', async (t) => {
  const server = await startServer(t, ['--host-memory-mb', '192'])
  const names = Array.from({ length: 5 }, (_, index) => `f${index}`)
  for (const name of names) await server.deploy(name, HOLDING)
  for (const name of names) t.equal((await server.get(`/${name}/`)).status, 200)
  await until(async () => {
    const [host] = (await server.status()).hosts
    return host !== undefined && host.isolates < names.length
  })
  for (const name of names) t.equal(await (await server.get(`/${name}/`)).text(), '5000000')
})
