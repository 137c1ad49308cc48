/** A new revision takes over without a failed call, without a mix, and at once. */
import type { FunctionInfo } from '@carpool/core'
import t from 'tap'
import { startCarpool, untilEnd } from '../support/command.ts'
import { IS_WHOLE } from '../support/form.ts'
import { startServer } from '../support/server.ts'

/** Says its number from module scope, from the handler, and after waiting: a mix would show. */
function numbered(n: number): string {
  return `
    const loaded = ${n}
    export default {
      async fetch() {
        const entered = ${n}
        await new Promise((resolve) => setTimeout(resolve, 5))
        return Response.json([loaded, entered, ${n}])
      }
    }`
}

const server = await startServer(t)
/** The last of the revisions that are deployed under load. */
const LAST = IS_WHOLE ? 6 : 4

t.test('a deleted function is gone at once', async (t) => {
  await server.deploy('brief', numbered(1))
  t.equal((await server.carpool('delete', 'brief')).code, 0)
  const response = await server.get('/brief/')
  t.equal(response.status, 404)
  t.match(await response.json(), { code: 'not-found' })
  t.strictSame(await server.json('list'), [])
})

t.test('deploys under load fail no call, mix no revisions, and take over at once', async (t) => {
  await server.deploy('app', numbered(1))
  const seen = new Set<number>()
  const wrong: unknown[] = []
  const load = { calling: true, latest: 1 }
  const call = async (): Promise<number> => {
    const atLeast = load.latest
    const response = await server.get('/app/')
    const numbers = (await response.json()) as number[]
    const [first = 0] = numbers
    if (response.status !== 200 || numbers.length !== 3 || numbers.some((n) => n !== first) || first < atLeast)
      wrong.push(numbers)
    seen.add(first)
    return first
  }
  const callers = Array.from({ length: IS_WHOLE ? 8 : 4 }, async () => {
    while (load.calling) await call()
  })
  for (let n = 2; n <= LAST; n++) {
    await server.deploy('app', numbered(n))
    load.latest = n
    t.equal(await call(), n, `the next call after deploy ${n} is answered by it`)
  }
  load.calling = false
  await Promise.all(callers)
  t.strictSame(wrong, [])
  t.strictSame(
    [...seen].toSorted((a, b) => a - b),
    Array.from({ length: LAST }, (_, index) => index + 1),
  )
})

t.test('going back to an earlier revision works', async (t) => {
  for (const n of [1, LAST]) {
    await server.deploy('app', numbered(n))
    t.strictSame(await (await server.get('/app/')).json(), [n, n, n])
  }
})

t.test('functions are there again after a restart, also after kill -9', async (t) => {
  const first = await startServer(t)
  await first.deploy('kept', numbered(7))
  await first.stop('SIGKILL')
  const second = await startServer(t, [], first.dataDir)
  t.strictSame(await (await second.get('/kept/')).json(), [7, 7, 7])
  t.equal((await second.stop('SIGTERM')).code, 0)
})

t.test('of deploys at the same time the last one stays, and a delete during a deploy wins', async (t) => {
  await Promise.all((IS_WHOLE ? [1, 2, 3, 4] : [1, 2, 3]).map((n) => server.deploy('raced', numbered(n))))
  const listed = async () => (await server.json<FunctionInfo[]>('list')).filter(({ name }) => name === 'raced')
  const [first] = (await (await server.get('/raced/')).json()) as number[]
  for (let again = 0; again < 5; again++) t.strictSame(await (await server.get('/raced/')).json(), [first, first, first])
  t.equal((await listed()).length, 1)

  // A process of its own: it comes while the deploy is under way.
  const deleting = untilEnd(startCarpool(['delete', 'raced', '--url', server.adminUrl], { CARPOOL_STATE_DIR: server.stateDir }))
  await Promise.all([server.deploy('raced', numbered(5)), deleting])
  const { status } = await server.get('/raced/')
  const isListed = (await listed()).length === 1
  t.equal(status, isListed ? 200 : 404, 'what is listed is what answers')
})
