import type { CarpoolServer } from '../lib/carpool-server.ts'

/** What users ask, as they ask it. */
const COMMANDS: ReadonlyArray<readonly string[]> = [
  ['usage'],
  ['usage', '--by', 'owner'],
  ['usage', '--by', 'hour'],
  ['invocations'],
  ['invocations', '--failed'],
  ['invocations', '--slow'],
  ['invocations', 'function-7'],
  ['invocations', 'function-7', '--slow'],
]

/** The commands without themselves: what the control plane takes. */
const ROUTES: ReadonlyArray<(server: CarpoolServer) => Promise<readonly unknown[]>> = [
  (server) => server.usage('function'),
  (server) => server.usage('owner'),
  (server) => server.usage('hour'),
  (server) => server.invocations({ limit: 20 }),
  (server) => server.invocations({ limit: 20, failed: true }),
  (server) => server.invocations({ limit: 20, slow: true }),
  (server) => server.invocations({ limit: 20, functionName: 'function-7' }),
  (server) => server.invocations({ limit: 20, functionName: 'function-7', slow: true }),
]

export interface QuestionResult {
  readonly command: string
  readonly rows: number
  /** The command from its start to its end. */
  readonly commandMs: readonly number[]
  /** The request to the control plane alone. */
  readonly requestMs: readonly number[]
}

/** Asks everything several times, in turns. @throws Error if there is no answer */
export async function askEverything(server: CarpoolServer, times: number): Promise<QuestionResult[]> {
  const results = COMMANDS.map((args) => ({
    command: ['carpool', ...args].join(' '),
    rows: 0,
    commandMs: [] as number[],
    requestMs: [] as number[],
  }))
  for (let time = 0; time < times; time++) {
    for (const [index, result] of results.entries()) {
      const startMs = performance.now()
      await server.command(...(COMMANDS[index] ?? []))
      const betweenMs = performance.now()
      const rows = (await ROUTES[index]?.(server)) ?? []
      result.commandMs.push(betweenMs - startMs)
      result.requestMs.push(performance.now() - betweenMs)
      result.rows = rows.length
      if (rows.length === 0) throw new Error(`${result.command} found nothing.`)
    }
  }
  return results
}
