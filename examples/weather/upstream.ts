/** A slow weather service for local use: node examples/weather/upstream.ts [port] [delay in ms] */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface UpstreamOptions {
  /** 0 picks a free one. */
  readonly port: number
  /** From request to answer. */
  readonly delayMs: number
}

interface Upstream {
  readonly url: string
  close(): void
}

/** Serves `GET /forecast?place=…` on loopback. */
export async function startUpstream({ port, delayMs }: UpstreamOptions): Promise<Upstream> {
  const server = createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://upstream')
    const place = searchParams.get('place')
    const known = pathname === '/forecast' && place !== null
    setTimeout(() => {
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(known ? forecast(place) : { error: 'not found' }))
    }, delayMs)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** The same weather for the same place, every day. */
function forecast(place: string) {
  const seed = Buffer.from(place).reduce((sum, byte) => sum + byte)
  const hours = Array.from({ length: 24 }, (_, hour) => ({
    time: `${String(hour).padStart(2, '0')}:00`,
    celsius: (seed % 25) + Math.round(5 * Math.sin(((hour - 8) * Math.PI) / 12)),
    rainMm: (seed * (hour + 1)) % 30 === 0 ? 2 : 0,
  }))
  return { place, hours }
}

if (import.meta.main) {
  const [port = '9090', delayMs = '500'] = process.argv.slice(2)
  const { url } = await startUpstream({ port: Number(port), delayMs: Number(delayMs) })
  console.log(`${url}/forecast?place=Oslo answers after ${delayMs} ms`)
}
