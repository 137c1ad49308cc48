import type { IncomingMessage, ServerResponse } from 'node:http'
import { Call, type CallInit, type CarpoolError } from '@carpool/core'
import type { Holding } from './byte-budget.ts'
import type { ClientConnection } from './client-connection.ts'

/** Answers calls that have ended. */
interface Answering {
  answer(call: HttpCall, error: CarpoolError | undefined): void
}

/** A call that came as an HTTP request. */
export class HttpCall extends Call {
  readonly connection: ClientConnection
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  /** What its body takes of the memory for clients. */
  holding: Holding | undefined = undefined
  /** It is in the hands of the server: what is refused from here on has a record, or is not where it was sent. */
  isInvoked = false
  readonly #answering: Answering

  constructor(
    init: CallInit,
    { connection, incoming, response }: Pick<HttpCall, 'connection' | 'incoming' | 'response'>,
    answering: Answering,
  ) {
    super(init)
    this.connection = connection
    this.incoming = incoming
    this.response = response
    this.#answering = answering
  }

  override end(error: CarpoolError | undefined): void {
    this.#answering.answer(this, error)
  }
}
