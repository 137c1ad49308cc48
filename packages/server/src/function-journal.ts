import type { InvocationResult, LogLevel, LogLine, Revision } from '@carpool/core'
import type { FunctionLogs } from '@carpool/function-logs'
import type { SourceMapper } from './source-mapper.ts'

type FailedResult = Exclude<InvocationResult, { outcome: 'ok' }>

/** Writes what functions say, and what Carpool has to say about them, to the functions' logs. */
export class FunctionJournal {
  readonly #logs: FunctionLogs
  readonly #mapper: SourceMapper
  readonly #pending = new Set<Promise<void>>()

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
    // The stack comes from where user code ran, so it may be anything.
    const text = typeof stack === 'string' ? stack : detail
    const unmapped = line(revision, 'carpool', 'error', `${outcome}: ${text}`, invocationId)
    const written: Promise<void> = this.#mapper
      .map(revision, text)
      .catch(() => text)
      .then((mapped) => this.#logs.append({ ...unmapped, msg: `${outcome}: ${mapped}` }))
      // Only the log itself could tell, and it counts what it loses.
      .catch(() => {})
      .finally(() => this.#pending.delete(written))
    this.#pending.add(written)
  }

  /** Resolves when every failure that was told so far is in the log. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending)
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
