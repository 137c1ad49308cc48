import type { AddressInfo } from 'node:net'
import {
  CarpoolError,
  NO_USAGE,
  type Call,
  type FinishedInvocation,
  type HeaderList,
  type InvocationRecord,
  type RequestHead,
} from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { createGateway, type GatewayLimits, type GatewayPhase, type ServerGatewayOptions } from '../../src/index.ts'

/** A call as the test that answers it sees it. */
export interface SeenCall {
  readonly id: string
  readonly functionName: string
  readonly request: RequestHead & { readonly body: Uint8Array }
  readonly hops: number
  readonly cancellation: { onCancel(listener: () => void): void }
}

export type Answer = (request: SeenCall) => Promise<FinishedInvocation> | FinishedInvocation

export interface TestGateway {
  readonly app: FastifyInstance
  readonly url: string
  readonly port: number
  readonly faults: CarpoolError[]
  /** The phase that the gateway is in; a test may change it. */
  readonly state: { phase: GatewayPhase }
}

export const LIMITS: GatewayLimits = {
  maxBodyBytes: 1000,
  maxHeaderBytes: 16_384,
  maxHeaders: 100,
  maxUrlBytes: 8192,
  headerTimeoutMs: 60_000,
  bodyTimeoutMs: 60_000,
  bodyBytesPerSecond: 1000,
  answerTimeoutMs: 60_000,
  maxConnections: 10_000,
  addressConnections: 0,
  maxBufferedBytes: 64 * 1024 * 1024,
}

type Options = Partial<Omit<ServerGatewayOptions, 'limits'>> & { readonly limits?: Partial<GatewayLimits> }

/** A gateway that listens, with what `answer` says in place of hosts. */
export async function gatewayWith(t: Test, answer: Answer, { limits, ...options }: Options = {}): Promise<TestGateway> {
  const faults: CarpoolError[] = []
  const state: TestGateway['state'] = { phase: 'open' }
  const app = createGateway({
    invoke: (call) => void answerBy(call, answer),
    limits: { ...LIMITS, ...limits },
    phase: () => state.phase,
    onFault: (fault) => faults.push(fault),
    ...options,
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return { app, url: `http://127.0.0.1:${port}`, port, faults, state }
}

/** Ends a call as the test says. */
export async function answerBy(call: Call, answer: Answer): Promise<void> {
  const { id, functionName, head, body, hops } = call
  const onCancel = (listener: () => void): void => {
    call.holder = { cancel: listener }
    if (call.isCanceled) listener()
  }
  try {
    const { result, record } = await answer({ id, functionName, request: { ...head, body }, hops, cancellation: { onCancel } })
    call.result = result
    call.record = record
    call.end(undefined)
  } catch (cause) {
    call.end(CarpoolError.from(cause))
  }
}

export function recordOf(id: string): InvocationRecord {
  return { id, queueUs: 1500, initUs: 20, cpuUs: 300, wallUs: 9520 } as InvocationRecord
}

export function ok(body: string, headers: HeaderList = [['content-type', 'text/plain']], status = 200): FinishedInvocation {
  return {
    record: recordOf('i-1'),
    result: { outcome: 'ok', start: 'warm', usage: NO_USAGE, response: { status, headers, body: Buffer.from(body) } },
  }
}
