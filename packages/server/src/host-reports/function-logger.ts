import type { InvocationResult, LogLevel, LogLine, Revision } from '@carpool/core'
import type { FunctionLogs } from '@carpool/telemetry'
import { mayHaveFrames, mayHavePositions, type SourceMapper } from './source-mapper.ts'

type FailedResult = Exclude<InvocationResult, { outcome: 'ok' }>

export interface FunctionLoggerOptions {
  /** Takes out what may not stand in the log of a revision's function. Default: nothing. */
  readonly redact?: (revision: Revision, text: string) => string
  /** Whether the log of the function's name is still the one of the revision: not once it was deleted. Default: it is. */
  readonly hasLog?: (revision: Revision) => boolean
}

/** Writes to the logs of functions: their console output, and why their invocations failed. */
export class FunctionLogger {
  readonly #logs: FunctionLogs
  readonly #mapper: SourceMapper
  readonly #redact: (revision: Revision, text: string) => string
  readonly #hasLog: (revision: Revision) => boolean
  /** By revision, the last of the lines that wait for its source map, or for one before them. */
  readonly #waiting = new Map<string, Promise<void>>()

  constructor(logs: FunctionLogs, mapper: SourceMapper, options: FunctionLoggerOptions = {}) {
    this.#logs = logs
    this.#mapper = mapper
    this.#redact = options.redact ?? ((_revision, text) => text)
    this.#hasLog = options.hasLog ?? (() => true)
  }

  /** A line that the function wrote to its console; stacks in it come in the author's positions. */
  wrote(revision: Revision, level: LogLevel, msg: string, invocationId: string | undefined): void {
    const unmapped = line(revision, 'console', level, msg, invocationId)
    if (mayHaveFrames(msg)) this.#appendMapped(revision, unmapped, this.#mapper.mapFrames(revision, msg))
    else if (this.#waiting.has(revision.id)) this.#appendMapped(revision, unmapped, Promise.resolve(msg))
    else this.#append(revision, unmapped)
  }

  /** An invocation that ended without a response, with its stack in the author's positions. */
  failed(revision: Revision, invocationId: string, { outcome, detail, stack }: FailedResult): void {
    if (outcome === 'canceled') return
    // The stack comes from where user code ran, so it may be anything.
    const text = typeof stack === 'string' ? stack : detail
    const unmapped = line(revision, 'carpool', 'error', `${outcome}: ${text}`, invocationId)
    const mapped = mayHavePositions(unmapped.msg)
      ? this.#mapper.map(revision, text).then((stack) => `${outcome}: ${stack}`)
      : Promise.resolve(unmapped.msg)
    this.#appendMapped(revision, unmapped, mapped)
  }

  /** Appends a line with its text as mapped, behind those of its revision that came before. */
  #appendMapped(revision: Revision, unmapped: LogLine, text: Promise<string>): void {
    const { id } = revision
    const before = this.#waiting.get(id)
    const write = async (): Promise<void> => {
      const msg = await text.catch(() => unmapped.msg)
      await before
      this.#append(revision, { ...unmapped, msg })
    }
    const written: Promise<void> = write()
      // The log itself counts what it loses.
      .catch(() => {})
      .finally(() => {
        if (this.#waiting.get(id) === written) this.#waiting.delete(id)
      })
    this.#waiting.set(id, written)
  }

  #append(revision: Revision, line: LogLine): void {
    if (this.#hasLog(revision)) this.#logs.append({ ...line, msg: this.#redact(revision, line.msg) }, revision.owner)
  }

  /** Resolves when everything so far is in the log. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#waiting.values())
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
