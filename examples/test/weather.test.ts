import t from 'tap'
import { startUpstream } from '../weather/upstream.ts'
import { serveExamples } from './support/serve-examples.ts'

t.test('weather reshapes what its upstream answers', async (t) => {
  const upstream = await startUpstream({ port: 0, delayMs: 20 })
  t.teardown(() => upstream.close())
  const url = await serveExamples(t, ['weather'], { env: { WEATHER_UPSTREAM: upstream.url } })

  const oslo = await fetch(`${url}/weather/?city=Oslo`)
  t.equal(oslo.status, 200)
  t.strictSame(await oslo.json(), { city: 'Oslo', warmest: 18, coldest: 8, umbrella: false })
  t.match(await (await fetch(`${url}/weather/?city=S%C3%A3o%20Paulo`)).json(), { city: 'São Paulo' })
  t.match(await (await fetch(`${url}/weather/`)).json(), { city: 'Oslo' })
})

t.test('weather answers 502 if its upstream has no forecast', async (t) => {
  const upstream = await startUpstream({ port: 0, delayMs: 0 })
  t.teardown(() => upstream.close())
  const url = await serveExamples(t, ['weather'], { env: { WEATHER_UPSTREAM: `${upstream.url}/elsewhere` } })
  const response = await fetch(`${url}/weather/`)
  t.equal(response.status, 502)
  t.strictSame(await response.json(), { error: 'The upstream answered 404.' })
})
