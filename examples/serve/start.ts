/**
 * `npm start`: serves all examples and says what to try. Takes --port, --admin-port and --data, and the environment variables of
 * `carpool serve`.
 */
import { untilStopped } from '@carpool/cli'
import { sandboxSentences } from '@carpool/sandbox'
import { resolveSettings, startServer, type RunningServer } from '@carpool/server'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startUpstream } from '../weather/upstream.ts'
import { deployExample } from './deploy-example.ts'
import { curlLine, TOUR } from './tour.ts'

const UPSTREAM_DELAY_MS = 500

try {
  await main()
  process.exit(0)
} catch (error) {
  console.error(`npm start: ${describe(error as Error)}`)
  process.exit(1)
}

async function main(): Promise<void> {
  const settings = readSettings()
  const stopped = untilStopped((line) => console.error(`npm start: ${line}`))
  console.log('Starting …')
  const server = await startServer(settings)
  const upstream = await startUpstream({ port: 0, delayMs: UPSTREAM_DELAY_MS })
  try {
    await Promise.race([stopped, deployAll(server, upstream.url).then(() => printTour(server))])
    await stopped
    console.log('Stopping …')
  } finally {
    upstream.close()
    await server.close()
  }
}

function readSettings() {
  const { values } = parseArgs({
    options: { 'port': { type: 'string' }, 'admin-port': { type: 'string' }, 'data': { type: 'string' } },
  })
  const defaults = { CARPOOL_DATA: join(import.meta.dirname, '../../.carpool'), CARPOOL_LOG_LEVEL: 'warn' }
  const flags = { port: values.port, adminPort: values['admin-port'], data: values.data }
  const settings = resolveSettings(flags, { ...defaults, ...process.env })
  // The weather upstream is on loopback, which functions may not fetch from otherwise.
  return { ...settings, allowEgress: [...settings.allowEgress, '127.0.0.1/32'] }
}

async function deployAll(server: RunningServer, upstreamUrl: string): Promise<void> {
  const variables: Record<string, Record<string, string>> = { weather: { WEATHER_UPSTREAM: upstreamUrl } }
  await Promise.all(TOUR.map(({ functionName }) => deployExample(server, functionName, variables[functionName])))
}

function printTour({ url, sandbox }: RunningServer): void {
  const width = Math.max(...TOUR.map(({ functionName }) => functionName.length)) + 2
  console.log(`\nCarpool serves ${TOUR.length} functions in one host process. Try them in another terminal:\n`)
  for (const stop of TOUR) {
    console.log(`  ${stop.functionName.padEnd(width)}${curlLine(url, stop)}`)
    console.log(`  ${' '.repeat(width)}→ ${stop.answer}\n`)
  }
  console.log(`${sandboxSentences(sandbox).join(' ')}\n`)
  console.log('See them all:    npx carpool list')
  console.log('Deploy yours:    npx carpool deploy <path>')
  console.log('Stop:            Ctrl+C')
}

function describe({ message, cause }: Error): string {
  const isPortTaken = (cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
  return isPortTaken ? `${message} Free ports are picked by: npm start -- --port 0 --admin-port 0` : message
}
