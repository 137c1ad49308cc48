/** Functions that call each other through the server are stopped, however they go about it. */
import t from 'tap'
import { rowsOf } from '../support/ledger.ts'
import { startServer, until } from '../support/server.ts'

const MAX_HOPS = 3

/** Calls itself so many times at once, and adds up what came of it. */
const FAN_OUT = `
  export default { async fetch(request) {
    const { searchParams } = new URL(request.url)
    const to = searchParams.get('to') + '?' + searchParams
    const headers = { 'x-carpool-hops': '0.AAAAAAAAAAAAAAAAAAAAAA', 'connection': 'x-carpool-hops' }
    const ask = async () => {
      const response = await fetch(to, { headers })
      return response.status === 508 ? { calls: 0, refusals: [await response.json()] } : response.json()
    }
    const answers = await Promise.all(Array.from({ length: Number(searchParams.get('width')) }, ask))
    return Response.json({
      calls: answers.reduce((sum, { calls }) => sum + calls, 1),
      refusals: answers.flatMap(({ refusals }) => refusals),
      seen: request.headers.has('x-carpool-hops') || answers.some(({ seen }) => seen === true),
    })
  } }`

/** Answers first, and calls itself afterwards. */
const BACKGROUND = `
  let calls = 0
  export default { fetch(request) {
    const { searchParams, pathname } = new URL(request.url)
    if (pathname === '/count') return Response.json(calls)
    calls++
    const to = searchParams.get('to') + '?' + searchParams
    setTimeout(() => fetch(to), 20)
    return new Response('done')
  } }`

t.test('functions that call each other', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-hops', String(MAX_HOPS)])
  await server.deploy('fan-out', FAN_OUT)
  await server.deploy('background', BACKGROUND)
  const queryFor = (name: string, width = 1): string =>
    `?${new URLSearchParams({ to: `${server.url}/${name}/`, width: String(width) }).toString()}`

  await t.test('a loop with two branches ends at its depth', async (t) => {
    const answer = await (await server.get(`/fan-out/${queryFor('fan-out', 2)}`)).json()
    const { calls, refusals, seen } = answer as {
      calls: number
      refusals: Array<{ code: string; detail: string }>
      seen: boolean
    }
    t.equal(calls, 2 ** (MAX_HOPS + 1) - 1)
    t.equal(refusals.length, 2 ** (MAX_HOPS + 1))
    t.match(refusals[0], { status: 508, code: 'loop-detected', detail: /3 times in a row; that is the limit/ })
    t.notOk(seen, 'no function sees the count')
  })
  await t.test('what a client says of it is worth nothing', async (t) => {
    for (const value of [`${MAX_HOPS + 1}.AAAAAAAAAAAAAAAAAAAAAA`, '4.', '4', '-1', '99999', '']) {
      const response = await server.get(`/fan-out/${queryFor('fan-out', 0)}`, { headers: { 'x-carpool-hops': value } })
      t.match(await response.json(), { calls: 1 }, JSON.stringify(value))
    }
  })
  await t.test('nor does it help to answer first', async (t) => {
    t.equal(await (await server.get(`/background/${queryFor('background')}`)).text(), 'done')
    await until(async () => /loop-detected"\} 17$/m.test(await (await fetch(`${server.adminUrl}/metrics`)).text()))
    t.equal(await (await server.get('/background/count')).json(), MAX_HOPS + 1)
  })
})

t.test('what one call leads to is limited, however its calls are spread', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-nested-calls', '20'])
  await server.deploy('fan-out', FAN_OUT)
  const fanOut = async (width: number): Promise<{ calls: number; refusals: Array<{ code: string; detail: string }> }> => {
    const query = new URLSearchParams({ to: `${server.url}/fan-out/`, width: String(width) }).toString()
    return (await server.get(`/fan-out/?${query}`)).json() as Promise<{ calls: number; refusals: [] }>
  }
  for (const width of [1, 2, 3, 2]) {
    const { calls, refusals } = await fanOut(width)
    t.equal(calls, width === 1 ? 17 : 21, `each calls itself ${width} times`)
    t.ok(refusals.length > 0 && refusals.every(({ code }) => code === 'loop-detected'))
    if (width > 1) t.match(refusals[0]?.detail, /^Functions made 20 calls because of one call from outside; that is the limit/)
  }
  const rows = await rowsOf(server, 'fan-out')
  t.equal(rows.filter(({ outcome }) => outcome === 'ok').length, 17 + 3 * 21)
  const refused = rows.filter(({ outcome }) => outcome === 'refused')
  t.ok(refused.length > 3, 'those that are refused have records, too')
  t.ok(refused.every(({ error, status }) => error === 'loop-detected' && Number(status) === 508))
})
