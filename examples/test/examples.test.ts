/** What each example answers. */
import t, { type Test } from 'tap'
import { startUpstream } from '../weather/upstream.ts'
import { serveExamples } from './support/serve-examples.ts'

const { url, deploy } = await serveExamples(t, ['calc', 'hono', 'lambda', 'seed', 'time', 'webhook'])

interface Work {
  readonly calculations: number
  readonly multiplications: number
  readonly divisions: number
  readonly sum: number
}

t.test('time answers with the time', async (t) => {
  const before = Date.now()
  const response = await fetch(`${url}/time/`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const { now } = (await response.json()) as { now: string }
  t.equal(new Date(now).toISOString(), now)
  t.ok(Date.parse(now) >= before && Date.parse(now) <= Date.now(), 'it is the time of the call')
})

t.test('ten calls of seed at once share one instance', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const response = await fetch(`${url}/seed/`)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), 'text/plain')
      return (await response.text()).split(',')
    }),
  )
  const instances = new Set(answers.map(([instanceId]) => instanceId))
  t.equal(instances.size, 1)
  t.match([...instances][0], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const ids = answers.map(([, invocationId]) => Number(invocationId)).toSorted((a, b) => a - b)
  t.strictSame(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  for (const [, , ...rest] of answers) t.strictSame(rest, ['10000000', '49999995000000', 'Hello World'])
})

t.test('calc', async (t) => {
  const calculate = (query: string) => fetch(`${url}/calc/?${query}`)

  const levels = [
    { calculations: 0, array: 0, calls: 0 },
    { calculations: 2_000, array: 100, calls: 20 },
    { calculations: 20_000, array: 1_000, calls: 20 },
    { calculations: 200_000, array: 10_000, calls: 20 },
  ]
  for (const [index, level] of levels.entries()) {
    t.test(`level ${index + 1} does its number of calculations`, async (t) => {
      const response = await calculate(`level=${index + 1}`)
      t.equal(response.status, 200)
      checkWork(t, (await response.json()) as Work, level)
    })
  }

  t.test('parameters replace those of the level', async (t) => {
    const response = await calculate('level=2&calculations=1001&calls=7')
    checkWork(t, (await response.json()) as Work, { calculations: 1001, array: 100, calls: 7 })
  })

  t.test('a parameter that makes no sense is refused', async (t) => {
    const refusals = {
      'level=10': 'level must be a whole number from 1 to 9',
      'array=1e7': 'array must be a whole number from 0 to 1000000',
      'calls=many': 'calls must be a whole number from 0 to 10000000',
      'calculations=5': 'calculations need an array of at least 1 and at least 1 call',
    }
    for (const [query, error] of Object.entries(refusals)) {
      const response = await calculate(query)
      t.equal(response.status, 400)
      t.strictSame(await response.json(), { error })
    }
  })
})

t.test('hono routes by path and method, with parameters and JSON', async (t) => {
  const call = async (path: string, init?: RequestInit): Promise<[number, string]> => {
    const response = await fetch(`${url}/hono${path}`, init)
    t.equal(response.headers.get('x-powered-by'), 'Hono', `the middleware saw ${path}`)
    return [response.status, await response.text()]
  }
  const put = (text: unknown) => ({ method: 'PUT', body: JSON.stringify({ text }) })

  t.strictSame(await call('/'), [200, 'Hello from Hono'])
  t.strictSame(await call('/notes/1'), [404, '404 Not Found'])
  t.strictSame(await call('/notes/1', put('buy milk')), [200, '{"text":"buy milk"}'])
  t.strictSame(await call('/notes/%C3%A9', put('café')), [200, '{"text":"café"}'])
  t.strictSame(await call('/notes/1'), [200, '{"text":"buy milk"}'])
  t.strictSame(await call('/notes'), [200, '{"1":{"text":"buy milk"},"é":{"text":"café"}}'])
  t.strictSame(await call('/notes/1', put(7)), [400, '{"error":"text must be a string"}'])
  t.strictSame(await call('/nowhere'), [404, '404 Not Found'])
})

t.test('lambda gets an API Gateway event and a context', async (t) => {
  const response = await fetch(`${url}/lambda/greet?name=Ada`)
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'application/json')
  t.match(response.headers.get('x-aws-request-id'), /./)
  t.strictSame(await response.json(), { greeting: 'Hello Ada', request: 'GET /greet', function: 'lambda' })

  const posted = await fetch(`${url}/lambda/`, { method: 'POST', body: 'x' })
  t.strictSame(await posted.json(), { greeting: 'Hello World', request: 'POST /', function: 'lambda' })
})

t.test('webhook transforms what is valid and says what is not', async (t) => {
  const post = async (body: string) => {
    const response = await fetch(`${url}/webhook/`, { method: 'POST', body })
    return { status: response.status, body: await response.json() }
  }
  const object = { id: 'in_42', amount: 1250, currency: 'eur', customer_email: 'ada@example.com' }
  const event = { type: 'charge.refunded', created: 1_795_253_400, data: { object } }

  t.strictSame(await post(JSON.stringify(event)), {
    status: 200,
    body: {
      event: 'charge.refunded',
      at: '2026-11-21T09:30:00.000Z',
      to: 'ada@example.com',
      text: 'in_42: 12.50 EUR paid back',
    },
  })
  t.strictSame(await post(JSON.stringify({ ...event, created: 'today', data: {} })), {
    status: 400,
    body: {
      issues: [
        { path: ['created'], message: 'Invalid input: expected number, received string' },
        { path: ['data', 'object'], message: 'Invalid input: expected object, received undefined' },
      ],
    },
  })
  t.match(await post('no JSON'), { status: 400, body: { issues: [{ path: [] }] } })
})

t.test('weather reshapes what its upstream answers', async (t) => {
  const upstream = await startUpstream({ port: 0, delayMs: 20 })
  t.teardown(() => upstream.close())
  await deploy('weather', { WEATHER_UPSTREAM: upstream.url })

  const oslo = await fetch(`${url}/weather/?city=Oslo`)
  t.equal(oslo.status, 200)
  t.strictSame(await oslo.json(), { city: 'Oslo', warmest: 18, coldest: 8, umbrella: false })
  t.match(await (await fetch(`${url}/weather/?city=S%C3%A3o%20Paulo`)).json(), { city: 'São Paulo' })
  t.match(await (await fetch(`${url}/weather/`)).json(), { city: 'Oslo' })
})

t.test('weather answers 502 if its upstream has no forecast', async (t) => {
  const upstream = await startUpstream({ port: 0, delayMs: 0 })
  t.teardown(() => upstream.close())
  await deploy('weather', { WEATHER_UPSTREAM: `${upstream.url}/elsewhere` })
  const response = await fetch(`${url}/weather/`)
  t.equal(response.status, 502)
  t.strictSame(await response.json(), { error: 'The upstream answered 404.' })
})

function checkWork(t: Test, work: Work, expected: { calculations: number; array: number; calls: number }): void {
  t.match(work, expected)
  t.equal(work.multiplications + work.divisions, expected.calculations)
  // A product is from 1 to 4, a quotient from 1/2 to 2.
  t.ok(work.sum >= work.multiplications + work.divisions / 2, `${work.sum} is not too small`)
  t.ok(work.sum <= 4 * work.multiplications + 2 * work.divisions, `${work.sum} is not too large`)
}
