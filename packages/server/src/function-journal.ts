import type { InvocationResult, LogLevel, LogLine, Revision } from '@carpool/core'
import type { FunctionLogs } from '@carpool/function-logs'
import type { SourceMapper } from './source-mapper.ts'

type FailedResult = Exclude<InvocationResult, { outcome: 'ok' }>

/** Writes what functions say, and what Carpool has to say about them, to the functions' logs. */
export class FunctionJournal {
  readonly #logs: FunctionLogs
  readonly #mapper: SourceMapper

  constructor(logs: FunctionLogs, mapper: SourceMapper) {
    this.#logs = logs
    this.#mapper = mapper
  }

  /** A line that the function wrote to its console. */
  wrote(revision: Revision, level: LogLevel, msg: string, invocationId: string | undefined): void {
    this.#logs.append(line(revision, 'console', level, msg, invocationId))
  }

  /** An invocation that ended without a response, with its stack in the author's positions. */
  failed(revision: Revision, invocationId: string, { outcome, detail, stack }: FailedResult): void {
    if (outcome === 'canceled') return
    void this.#mapper.map(revision, stack ?? detail).then((mapped) => {
      this.#logs.append(line(revision, 'carpool', 'error', `${outcome}: ${mapped}`, invocationId))
    })
  }
}

function line(
  { functionName, id }: Revision,
  stream: LogLine['stream'],
  level: LogLevel,
  msg: string,
  invocationId: string | undefined,
): LogLine {
  const time = new Date().toISOString()
  return { time, level, stream, function: functionName, revision: id, ...(invocationId !== undefined && { invocationId }), msg }
}
