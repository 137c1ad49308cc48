import { CarpoolError, jsonLine, problemOfError } from '@carpool/core'
import { debuglog } from 'node:util'
import type { Io } from './command.ts'
import { visibleText } from './format.ts'

const EXIT_FAILED = 1
export const EXIT_USAGE = 2

const debug = debuglog('carpool')

/** The output of a command: data on stdout, as text or as one JSON document, everything else on stderr. */
export class Output {
  readonly json: boolean
  readonly #io: Io
  #answered = false

  constructor(io: Io, json: boolean) {
    this.#io = io
    this.json = json
  }

  /** The command's one answer. */
  answer(document: unknown, text: string): void {
    this.#answered = true
    this.line(document, text)
  }

  /** One of many answers: a line each, in JSON too. */
  line(document: unknown, text: string): void {
    this.#io.stdout.write(this.json ? jsonLine(document as object) : `${text}\n`)
  }

  /** Data that goes to stdout as it is. */
  raw(bytes: Uint8Array): void {
    this.#answered = true
    this.#io.stdout.write(bytes)
  }

  /** Something for people to know. */
  note(text: string): void {
    this.#io.stderr.write(`${text}\n`)
  }

  /** Something that went wrong, but does not end the command. */
  warn(message: string): void {
    this.note(`carpool: ${visibleText(message.trim()).replaceAll(/\s*\n\s*/g, '; ')}`)
  }

  /** The error that ended the command. @returns the exit code */
  fail(cause: unknown): number {
    const error = describable(cause)
    debug('%O', cause)
    this.warn(error.message)
    if (this.json && !this.#answered) this.answer({ error: problemOfError(error) }, '')
    return error.code === 'usage' || error.code === 'invalid-setting' ? EXIT_USAGE : EXIT_FAILED
  }
}

/** Unlike `CarpoolError.from` this keeps the message of an unexpected error: the user of the command may know this machine. */
export function describable(cause: unknown): CarpoolError {
  if (cause instanceof CarpoolError) return cause
  return new CarpoolError('internal', cause instanceof Error ? cause.message : String(cause), { cause })
}

/** A command line that makes no sense. @param reason what is wrong with it; commander's own texts are taken as they are */
export function usageError(reason: string): CarpoolError {
  const text = reason
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '')
  return new CarpoolError('usage', `${text}. See: carpool --help`)
}
