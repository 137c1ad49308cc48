/** A connection with a host that may send anything. */
import { duplexPair } from 'node:stream'
import {
  AwaitedCall,
  NO_USAGE,
  type AnswerSink,
  type Call,
  type InvocationResult,
  type ResponseHead,
  type UploadTaker,
} from '@carpool/core'
import { Connection, packUsage, type ToHost, type ToServer } from '@carpool/wire'
import { routedCall, type CallOptions } from '../../../../test/support/call.ts'
import { HostConnection, type HostEvents } from '../../src/pool/host-connection.ts'
import type { StreamSource, StreamTarget } from '../../src/pool/joined-streams.ts'
import type { HostProgram } from '../../src/pool/os-process.ts'

export const KIB = 1024
export const WINDOW = 256 * KIB
export const USAGE = packUsage({ ...NO_USAGE, cpuUs: 7 })

/** A body of a request that has come as a whole. */
export class Body {
  takenBytes = 0
  taker: UploadTaker | undefined
  isStopped = false
  why = ''
  isOpen = false
  totalBytes: number

  constructor(bytes: number) {
    this.totalBytes = bytes
  }

  get state(): 'open' | 'ended' | 'broken' {
    if (this.why !== '') return 'broken'
    return this.takenBytes < this.totalBytes || this.isOpen ? 'open' : 'ended'
  }

  open(taker: UploadTaker): void {
    this.taker = taker
    taker.readable()
  }

  take(mostBytes: number): Uint8Array | undefined {
    const bytes = Math.min(mostBytes, this.totalBytes - this.takenBytes)
    this.takenBytes += bytes
    return bytes === 0 ? undefined : Buffer.alloc(bytes, 'u')
  }

  stop(): void {
    this.isStopped = true
  }
}

/** What a caller gets who takes answers as they stream. */
export interface Streamed {
  head: ResponseHead | undefined
  text: string
  credit: (bytes: number) => void
}

/** A connection with a host that a test speaks for. */
export class Rig {
  /** What the host was told, in order. */
  readonly told: string[] = []
  readonly results: InvocationResult[] = []
  /** What has begun and ended, in order. */
  readonly changes: string[] = []
  readonly connection: HostConnection
  readonly host: Connection<ToHost, ToServer>
  /** Open fetches of the host. */
  readonly fetches = new Map<number, StreamSource & StreamTarget>()
  closed: string | undefined
  #wake = (): void => {}

  constructor() {
    const [near, far] = duplexPair()
    const wake = (): void => this.#wake()
    const events = {
      ready: () => {},
      answered: (_call, result) => {
        this.results.push(result)
        wake()
      },
      answersChanged: (functionName, kind, change) => this.changes.push(`${functionName} ${kind} ${change}`),
      fetchBodies: (fetch) => this.fetches.get(fetch),
      unbegun: () => this.results.push({ outcome: 'canceled' } as InvocationResult),
      closed: (reason) => {
        this.closed = reason?.message ?? 'ended'
        this.connection.lose(() => undefined)
        wake()
      },
    } satisfies Partial<HostEvents>
    const program = { setup: { type: 'setup', maxBodyBytes: 1000 }, runtime: '' } as unknown as HostProgram
    this.connection = new HostConnection(near, program, 0, events as unknown as HostEvents)
    this.host = new Connection<ToHost, ToServer>(far, {
      onMessage: (message, text, body) => {
        if (message.type === 'setup' || message.type === 'load') return
        const { type, ...rest } = message as ToHost & { of?: string; id?: string; revision?: string }
        delete rest.of
        delete rest.id
        delete rest.revision
        if (type === 'invoke') this.told.push(`invoke ${JSON.stringify(rest)}`)
        else this.told.push(`${type} ${JSON.stringify(rest)}${body.length > 0 ? ` ${body.length}` : ''}${text && ` ${text}`}`)
        wake()
      },
      onClose: () => {},
    })
  }

  send(options: CallOptions = {}, body?: Body): AwaitedCall {
    const call = routedCall('f', options)
    if (body !== undefined) call.upload = body
    this.connection.give(call.revision, { source: '' })
    this.connection.send(call)
    return call
  }

  /** Sends a call whose caller takes its answer as it streams. */
  stream(options: CallOptions = {}, body?: Body, functionName = 'f'): { call: Call; streamed: Streamed } {
    const call = routedCall(functionName, options)
    if (body !== undefined) call.upload = body
    const streamed: Streamed = { head: undefined, text: '', credit: () => {} }
    call.beginAnswer = (head, credit): AnswerSink => {
      streamed.head = head
      streamed.credit = credit
      return { write: (bytes) => void (streamed.text += Buffer.from(bytes).toString()) }
    }
    this.connection.give(call.revision, { source: '' })
    this.connection.send(call)
    return { call, streamed }
  }

  begin(invocation: number, headers: ResponseHead['headers'] = [], status = 200): void {
    this.host.send({ type: 'answer-head', invocation, start: 'warm' }, JSON.stringify({ status, headers }))
  }

  data(number: number, bytes: string | Buffer, end = false): void {
    this.host.send({ type: 'stream-data', of: 'call', number, ...(end && { end }) }, '', Buffer.from(bytes))
  }

  /** The host asks to have the request of a call be the answer of one. */
  join(number: number, to: number, cameBytes: number): void {
    this.host.send({ type: 'stream-join', of: 'call', number, to: { of: 'call', number: to }, cameBytes })
  }

  end(invocation: number): void {
    this.host.send({ type: 'answer-end', invocation, start: 'warm', usage: USAGE })
  }

  async until(isTrue: () => boolean): Promise<void> {
    // What waits for a timer of the connection keeps no process alive.
    const alive = setInterval(() => {}, 1_000)
    while (!isTrue()) await new Promise<void>((resolve) => (this.#wake = resolve))
    clearInterval(alive)
  }

  /** Resolves when the server has read what the host has said before: it answers that it was away. */
  async read(): Promise<void> {
    const before = this.told.length
    this.host.send({ type: 'away', absence: 1 })
    await this.until(() => this.told.slice(before).some((one) => one.startsWith('resume')))
    this.told.splice(
      this.told.findIndex((one) => one.startsWith('resume')),
      1,
    )
  }
}
