import { CarpoolError, NO_USAGE, type InvocationResult, type InvocationUsage } from '@carpool/core'
import type { StartResult } from '@carpool/wire'
import type { SlotLease } from './host-slots.ts'

const LOST_START: StartResult = {
  ok: false,
  code: 'load-failed',
  message: 'The host process died while it loaded the function.',
  stack: '',
}

interface WaitingForAnswer extends Waiting<InvocationResult> {
  /** As last told. */
  usage: InvocationUsage
  readonly slot: SlotLease
  readonly functionName: string
}

interface Waiting<Reply> {
  readonly resolve: (reply: Reply) => void
  /** When a host that keeps its limits has replied, on the monotonic clock, in ms. */
  readonly overdueAtMs: number
}

/** What a server waits for from one host process. When the host is lost, everything that waits is answered at once. */
export class PendingReplies {
  readonly #answers = new Map<number, WaitingForAnswer>()
  readonly #starts = new Map<string, Array<Waiting<StartResult>>>()
  readonly #compiles = new Map<string, Waiting<Uint8Array | undefined>>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #readyBy: number
  #isReady = false
  #lastInvocation = 0
  #lost = false

  /** @param readyBy when the host should have told that it is ready, on the monotonic clock, in ms */
  constructor(readyBy: number) {
    this.#readyBy = readyBy
    // Whoever does not wait for it must not be told by an unhandled rejection.
    this.#ready.promise.catch(() => {})
  }

  get invocations(): number {
    return this.#answers.size
  }

  get invocationsSent(): number {
    return this.#lastInvocation
  }

  get lost(): boolean {
    return this.#lost
  }

  get untilReady(): Promise<void> {
    return this.#ready.promise
  }

  ready(): void {
    this.#isReady = true
    this.#ready.resolve()
  }

  /** Whether the host owes a reply that it should have given. */
  isOverdue(nowMs: number): boolean {
    if (!this.#isReady && this.#readyBy <= nowMs) return true
    const isLate = ({ overdueAtMs }: Waiting<never>): boolean => overdueAtMs <= nowMs
    return (
      this.#answers.values().some(isLate) ||
      this.#compiles.values().some(isLate) ||
      this.#starts.values().some((all) => all.some(isLate))
    )
  }

  /** Numbers a new invocation and waits for how it ends. @param slot given back when it ends, if not before */
  expectAnswer(
    overdueAtMs: number,
    slot: SlotLease,
    functionName: string,
  ): [invocation: number, result: Promise<InvocationResult>] {
    const invocation = ++this.#lastInvocation
    const result = new Promise<InvocationResult>((resolve) => {
      if (!this.#lost) return void this.#answers.set(invocation, { resolve, overdueAtMs, usage: NO_USAGE, slot, functionName })
      slot.end()
      resolve(hostLost(NO_USAGE, false))
    })
    return [invocation, result]
  }

  /** An answer to a number that does not wait (any more) is dropped: the host runs user code and may say anything. */
  answer(invocation: number, result: InvocationResult): void {
    const waiting = this.#answers.get(invocation)
    if (waiting === undefined) return
    this.#answers.delete(invocation)
    waiting.slot.end()
    waiting.resolve(result)
  }

  /** An invocation waits for something, so another may run. */
  waits(invocation: number): void {
    this.#answers.get(invocation)?.slot.release()
  }

  /** What an invocation has used so far, for the case that nothing more is heard of it. */
  used(invocation: number, usage: InvocationUsage): void {
    const waiting = this.#answers.get(invocation)
    if (waiting !== undefined) waiting.usage = usage
  }

  expectStarted(revision: string, overdueAtMs: number): Promise<StartResult> {
    return new Promise((resolve) => {
      if (this.#lost) return resolve(LOST_START)
      const waiting = this.#starts.get(revision)
      if (waiting === undefined) this.#starts.set(revision, [{ resolve, overdueAtMs }])
      else waiting.push({ resolve, overdueAtMs })
    })
  }

  /** Replies come in the order of the requests. */
  started(revision: string, result: StartResult): void {
    const waiting = this.#starts.get(revision)
    waiting?.shift()?.resolve(result)
    if (waiting?.length === 0) this.#starts.delete(revision)
  }

  expectCompiled(revision: string, overdueAtMs: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      if (this.#lost) resolve(undefined)
      else this.#compiles.set(revision, { resolve, overdueAtMs })
    })
  }

  compiled(revision: string, codeCache: Uint8Array | undefined): void {
    this.#compiles.get(revision)?.resolve(codeCache)
    this.#compiles.delete(revision)
  }

  /**
   * @param crash of a function that may have brought the host down: resolves with whether somebody's code did; undefined for the others, which are
   *   answered at once
   */
  lose(crash: (functionName: string) => Promise<boolean> | undefined): void {
    this.#lost = true
    this.#ready.reject(new CarpoolError('no-host', 'The host process died before it was ready.'))
    for (const { resolve, usage, slot, functionName } of this.#answers.values()) {
      slot.end()
      const untilKnown = crash(functionName)
      if (untilKnown === undefined) resolve(hostLost(usage, false))
      else void untilKnown.then((isSuspect) => resolve(hostLost(usage, isSuspect)))
    }
    for (const { resolve } of [...this.#starts.values()].flat()) resolve(LOST_START)
    for (const { resolve } of this.#compiles.values()) resolve(undefined)
    this.#answers.clear()
    this.#starts.clear()
    this.#compiles.clear()
  }
}

function hostLost(usage: InvocationUsage, isSuspect: boolean): InvocationResult {
  return { outcome: 'host-lost', start: 'warm', usage, detail: 'The host process died while it ran the invocation.', isSuspect }
}
