import { CarpoolError, NO_USAGE, type AnswerSink, type Call, type HeaderList, type InvocationResult } from '@carpool/core'
import type { Test } from 'tap'
import type { GatewayLimits } from '../../src/index.ts'
import { gatewayWith, recordOf } from './gateway.ts'

const WINDOW_BYTES = 256 * 1024

/** The host's side of a call: takes the body of its request within a window, and streams its answer. */
export class HostedCall {
  readonly call: Call
  readonly received: Buffer[] = []
  /** How the body of the request ended, if it has: `ended`, or why it broke off. */
  uploadEnd: string | undefined
  /** Bytes that the client's side has credited. */
  credited = 0
  /** How much more of the request's body is taken. */
  windowBytes: number
  #sink: AnswerSink | undefined
  #wake: () => void = () => {}

  constructor(call: Call, windowBytes: number) {
    this.call = call
    this.windowBytes = windowBytes
    call.placedMs = performance.now()
    call.holder = {
      cancel: () => {
        this.wakeUp()
        this.end('canceled')
      },
    }
    const taker = { readable: () => this.pull() }
    call.upload?.open(Object.defineProperty(taker, 'isWanted', { get: () => this.windowBytes > 0 }) as never)
  }

  get receivedBytes(): number {
    return this.received.reduce((sum, { length }) => sum + length, 0)
  }

  /** Takes what there is, as far as the window goes. */
  pull(): void {
    const { upload } = this.call
    for (;;) {
      const bytes = this.windowBytes === 0 ? undefined : upload?.take(Math.min(this.windowBytes, 64 * 1024))
      if (bytes === undefined) break
      this.windowBytes -= bytes.length
      this.received.push(Buffer.from(bytes))
    }
    if (upload?.state === 'ended') this.uploadEnd = 'ended'
    else if (upload?.state === 'broken') this.uploadEnd = upload.why
    this.wakeUp()
  }

  open(bytes: number): void {
    this.windowBytes += bytes
    this.pull()
  }

  begin(headers: HeaderList = [], status = 200): void {
    this.#sink = this.call.beginAnswer({ status, headers }, (bytes) => {
      this.credited += bytes
      this.wakeUp()
    })
  }

  write(bytes: string | Buffer): void {
    this.#sink?.write(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
  }

  /** Ends the call, with its record. */
  end(outcome: 'ok' | 'canceled' | 'host-lost' | 'exception' = 'ok', body = ''): void {
    const { call } = this
    if (call.result !== undefined) return
    const how = { start: 'warm', usage: NO_USAGE } as const
    const response = { status: 200, headers: [], body: Buffer.from(body) }
    const result: InvocationResult = outcome === 'ok' ? { ...how, outcome, response } : { ...how, outcome, detail: outcome }
    call.result = result
    call.record = recordOf(call.id)
    call.end(undefined)
  }

  wakeUp(): void {
    this.#wake()
  }

  /** Waits for something that bytes, credit or a cancellation bring about. */
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}

/** A gateway whose calls a test plays the host of. */
export async function streamingGateway(t: Test, limits: Partial<GatewayLimits> = {}, windowBytes = WINDOW_BYTES) {
  const calls: HostedCall[] = []
  let wake = (): void => {}
  const invoke = (call: Call): void => {
    try {
      calls.push(new HostedCall(call, windowBytes))
    } catch (cause) {
      call.end(CarpoolError.from(cause))
    }
    wake()
  }
  const gateway = await gatewayWith(t, () => Promise.reject(new Error('unused')), { invoke, limits })
  let taken = 0
  const nextCall = async (): Promise<HostedCall> => {
    while (calls.length <= taken) await new Promise<void>((resolve) => (wake = resolve))
    return calls[taken++]!
  }
  return { ...gateway, calls, nextCall }
}
