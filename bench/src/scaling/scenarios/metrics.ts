/** The metrics of a server that has served, by the judgement of Prometheus' own tool. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Verdict } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { HELLO_FILE, SLEEPER_FILE } from '../functions.ts'
import { runLoad } from '../../lib/load/generator.ts'
import type { Measured } from '../../lib/scenario.ts'

const CLIENTS = 8
const CALLS_EACH = 20

interface Checked {
  /** Undefined if the tool is not there. */
  readonly exitCode: number | undefined
  readonly output: string
}

export async function measureMetrics(): Promise<Measured> {
  await using server = await startBenchServer()
  const { carpool } = server
  await carpool.deploy(HELLO_FILE, 'hello')
  await carpool.deploy(SLEEPER_FILE, 'sleeper')
  await runLoad({
    origin: carpool.url,
    paths: ['/hello/', '/sleeper/?ms=5', '/nobody/'],
    load: { kind: 'closed', clients: CLIENTS, callsEach: CALLS_EACH },
  })
  const metrics = await carpool.metrics()
  const checked = await check(metrics)
  const verdict: Verdict = {
    kind: 'demand',
    claim: 'metrics: promtool check metrics',
    isMet: checked.exitCode === 0,
    detail:
      checked.exitCode === undefined
        ? 'promtool is not installed (Debian: prometheus)'
        : `exit code ${checked.exitCode}${checked.output === '' ? '' : `: ${checked.output.trim().replaceAll('\n', '; ')}`}`,
  }
  const lines = metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
  return { blocks: [`Metrics: ${lines} series`], verdicts: [verdict], results: { ...checked, lines } }
}

async function check(metrics: string): Promise<Checked> {
  const tool = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = once(tool, 'close') as Promise<[number]>
  // Without the tool nobody reads.
  tool.stdin.on('error', () => {}).end(metrics)
  try {
    const output = Promise.all([text(tool.stdout), text(tool.stderr)])
    const [exitCode] = await ended
    return { exitCode, output: (await output).join('') }
  } catch {
    return { exitCode: undefined, output: '' }
  }
}
