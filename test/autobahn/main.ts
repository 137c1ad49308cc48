/**
 * `npm run test:autobahn -- [cases]`: runs the Autobahn test suite against a function that echoes, and prints what came of it
 * by class. CARPOOL_AUTOBAHN names the folder in which `.ci/autobahn` has put the suite. Fails if a case does: one that passes
 * all the same, but not in the way that the suite likes best, is counted apart.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runCarpool, startCarpool, untilEnd } from '../support/command.ts'

const ECHO = `export default { fetch() {
  const [client, server] = Object.values(new WebSocketPair())
  server.accept()
  server.addEventListener('message', ({ data }) => server.send(data))
  return new Response(null, { status: 101, webSocket: client })
} }`
/** The suite sends messages of 16 MiB, and echoes of them are as large. */
const FLAGS = ['--max-body-bytes', '20000000']
const CONFIG = { memoryMb: 1024, cpuMs: 120_000 }
/** Compression is not offered. */
const LEFT_OUT = ['12.*', '13.*']

const CLASSES: Readonly<Record<string, string>> = {
  1: 'framing',
  2: 'pings and pongs',
  3: 'reserved bits',
  4: 'opcodes',
  5: 'fragmentation',
  6: 'UTF-8',
  7: 'close handshake',
  9: 'limits and speed',
  10: 'others',
}

interface Outcome {
  readonly behavior: string
  readonly behaviorClose: string
}

const suite = process.env['CARPOOL_AUTOBAHN']
if (suite === undefined) {
  console.error('CARPOOL_AUTOBAHN names no folder: see .ci/autobahn.')
  process.exit(2)
}
const cases = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'carpool-autobahn-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const env = { CARPOOL_STATE_DIR: folder, CARPOOL_LOG_LEVEL: 'warn' }
const server = startCarpool(
  ['serve', '--port', '0', '--admin-port', '0', '--data', join(folder, 'data'), '--json', ...FLAGS],
  env,
)
const ended = untilEnd(server)
const { url, adminUrl } = JSON.parse(await firstLine()) as { url: string; adminUrl: string }
writeFileSync(join(folder, 'index.js'), ECHO)
writeFileSync(join(folder, 'carpool.config.json'), JSON.stringify(CONFIG))
const { code, stderr } = await runCarpool(['deploy', folder, '--name', 'echo', '--url', adminUrl], env)
if (code !== 0) throw new Error(stderr)
const spec = {
  options: { failByDrop: false },
  outdir: join(folder, 'reports'),
  servers: [{ agent: 'carpool', url: `${url.replace(/^http/, 'ws')}/echo/`, options: { version: 18 } }],
  'cases': cases.length === 0 ? ['*'] : cases,
  'exclude-cases': LEFT_OUT,
  'exclude-agent-cases': {},
}
writeFileSync(join(folder, 'spec.json'), JSON.stringify(spec))
await promisify(execFile)(join(suite, 'bin/wstest'), ['-m', 'fuzzingclient', '-s', join(folder, 'spec.json')], { cwd: folder })
server.kill('SIGTERM')
await ended
const report = JSON.parse(readFileSync(join(folder, 'reports/index.json'), 'utf8')) as { carpool: Record<string, Outcome> }
const outcomes = Object.entries(report.carpool)

console.log('| class | cases | passed | not strict | informational | failed |\n| --- | ---: | ---: | ---: | ---: | ---: |')
for (const [number, name] of Object.entries(CLASSES)) {
  const ofClass = outcomes.filter(([id]) => id.split('.')[0] === number).map(([, outcome]) => kindOf(outcome))
  if (ofClass.length === 0) continue
  const counts = ['OK', 'NON-STRICT', 'INFORMATIONAL', 'FAILED'].map((kind) => ofClass.filter((one) => one === kind).length)
  console.log(`| ${number} ${name} | ${ofClass.length} | ${counts.join(' | ')} |`)
}
const failed = outcomes.filter(([, outcome]) => kindOf(outcome) === 'FAILED')
for (const [id, { behavior, behaviorClose }] of failed) console.error(`${id} failed: ${behavior}, closed ${behaviorClose}`)
process.exitCode = failed.length === 0 && outcomes.length > 0 ? 0 : 1

function kindOf({ behavior, behaviorClose }: Outcome): string {
  const isFine = behavior === 'OK' || behavior === 'NON-STRICT' || behavior === 'INFORMATIONAL'
  return isFine && (behaviorClose === 'OK' || behaviorClose === 'INFORMATIONAL') ? behavior : 'FAILED'
}

async function firstLine(): Promise<string> {
  let text = ''
  for await (const chunk of server.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return text.split('\n')[0] ?? ''
}
