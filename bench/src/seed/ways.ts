import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { splitHosts, untilStandby } from '../lib/standby.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import type { RunningWay, Way } from './way.ts'

interface WaysOptions {
  /** The function's file, absolute. */
  readonly file: string
  /** Most processes of the process-per-call way. */
  readonly processCap: number
}

const FUNCTION_NAME = 'seed'

/** The three ways, all of them with the same file. */
export function createWays({ file, processCap }: WaysOptions): Way[] {
  return [
    { key: 'carpool', title: 'Carpool', start: () => startCarpoolWay(file) },
    {
      key: 'plain-node',
      title: 'plain Node process',
      start: () => startBaseline('plain-node.js', [file], () => true),
    },
    {
      key: 'process-per-call',
      title: 'process per call',
      note: `process per call: at most ${processCap} processes, above that calls wait; none is started in advance.`,
      start: () => startBaseline('process-per-call.js', [file, String(processCap)], (program) => program.endsWith('/worker.js')),
    },
  ]
}

async function startCarpoolWay(file: string): Promise<RunningWay> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await temporaryFolder())
  const server = stack.use(await startCarpool({ dataDir: join(folder.path, 'data'), flags: ['--max-hosts', '1'] }))
  const { url } = await server.deploy(dirname(file), FUNCTION_NAME)
  // What it takes is to be in the figures.
  await untilStandby(server)
  const kept = stack.move()
  return {
    url,
    rootPid: server.pid,
    recorded: () => server.usage('function'),
    splitProcesses: (usage) => splitHosts(usage, server),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

async function startBaseline(
  script: string,
  args: readonly string[],
  runsFunction: (program: string) => boolean,
): Promise<RunningWay> {
  const server = await startChildServer({
    command: process.execPath,
    args: [fileURLToPath(new URL(`baseline/${script}`, import.meta.url)), ...args],
    parseReady: (line) => parseJsonLine<{ url: string }>(line)?.url,
  })
  return {
    url: `${server.ready}/`,
    rootPid: server.pid,
    splitProcesses: async ({ processes }) => ({ serving: processes.filter(({ program }) => runsFunction(program)), standby: [] }),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}
