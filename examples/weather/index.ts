import { defineFunction } from '@carpool/sdk'

/** What the upstream answers. */
interface Forecast {
  readonly place: string
  readonly hours: ReadonlyArray<{ readonly time: string; readonly celsius: number; readonly rainMm: number }>
}

export default defineFunction<{ WEATHER_UPSTREAM: string }>({
  async fetch(request, env) {
    const city = new URL(request.url).searchParams.get('city') ?? 'Oslo'
    const response = await fetch(`${env.WEATHER_UPSTREAM}/forecast?place=${encodeURIComponent(city)}`)
    if (!response.ok) return Response.json({ error: `The upstream answered ${response.status}.` }, { status: 502 })

    const { place, hours } = (await response.json()) as Forecast
    const degrees = hours.map(({ celsius }) => celsius)
    return Response.json({
      city: place,
      warmest: Math.max(...degrees),
      coldest: Math.min(...degrees),
      umbrella: hours.some(({ rainMm }) => rainMm >= 1),
    })
  },
})
