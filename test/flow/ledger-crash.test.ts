/** What a client saw answered is in the ledger, also when the server is killed in the middle of it. */
import { Agent, request } from 'node:http'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { readLedger } from '../support/ledger.ts'
import { startServer, temporaryFolder } from '../support/server.ts'

const CLIENTS = 16
/** How many answers there are before each kill. */
const ANSWERS = IS_WHOLE ? [1, 300, 20, 150, 3, 500, 80, 40, 250, 700] : [1, 20, 300]

t.test(`after ${ANSWERS.length} kills under load every answer has its record, and none is there twice`, async (t) => {
  const dataDir = temporaryFolder(t)
  const answered: string[] = []
  for (const answers of ANSWERS) {
    const server = await startServer(t, [], dataDir)
    if (answered.length === 0) {
      await server.deploy('quick', 'export default { fetch: () => new Response("x") }')
      await server.deploy(
        'waits',
        'export default { async fetch() { await new Promise((r) => setTimeout(r, 5)); return new Response("x") } }',
      )
    }
    const agent = new Agent({ keepAlive: true })
    const wanted = answered.length + answers
    const killed = Promise.withResolvers<void>()
    const client = async (path: string): Promise<void> => {
      for (;;) {
        const id = await call(server.url + path, agent)
        if (id === undefined) return
        answered.push(id)
        if (answered.length === wanted) killed.resolve()
      }
    }
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index % 2 === 0 ? '/quick/' : '/waits/'))
    await killed.promise
    await server.stop('SIGKILL')
    await Promise.all(clients)
    agent.destroy()
  }
  // The last server's end was a kill as well: a new one has to find all of it.
  const server = await startServer(t, [], dataDir)
  t.equal((await server.get('/quick/')).status, 200)
  await server.recorded()
  const ids = readLedger(dataDir).map(({ id }) => String(id))
  const recorded = new Set(ids)
  t.equal(ids.length, recorded.size, `${ids.length} records, none twice`)
  t.strictSame(
    answered.filter((id) => !recorded.has(id)),
    [],
    `each of ${answered.length} answers has its record`,
  )
})

/** @returns the id of the invocation if its answer came whole; undefined if the server was gone */
function call(url: string, agent: Agent): Promise<string | undefined> {
  return new Promise((resolve) => {
    request(url, { agent }, (response) => {
      response.once('error', () => resolve(undefined))
      response.resume()
      response.once('end', () => resolve(String(response.headers['x-carpool-invocation'])))
    })
      .once('error', () => resolve(undefined))
      .end()
  })
}
