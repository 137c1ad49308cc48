import { CarpoolError, NO_USAGE, NumberedTable, type Call, type InvocationResult, type InvocationUsage } from '@carpool/core'
import type { StartResult } from '@carpool/wire'

const LOST_START: StartResult = {
  ok: false,
  code: 'load-failed',
  message: 'The host process died while it loaded the function.',
  stack: '',
}

interface Waiting<Reply> {
  readonly resolve: (reply: Reply) => void
  /** When a host that keeps its limits has replied, on the monotonic clock, in ms. */
  readonly overdueAtMs: number
}

/** The replies that one host process owes. When the host is lost, everything that waits is answered at once. */
export class PendingReplies {
  readonly #calls = new NumberedTable<Call>()
  readonly #starts = new Map<string, Array<Waiting<StartResult>>>()
  readonly #codeCaches = new Map<string, Waiting<Uint8Array | undefined>>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #readyBy: number
  readonly #onAnswer: (call: Call, result: InvocationResult) => void
  #isReady = false
  #lastNumber = 0
  #lost = false
  /** No call is overdue before this, on the monotonic clock, in ms. */
  #nextOverdueAtMs = Number.POSITIVE_INFINITY

  /**
   * @param readyBy when the host should have been ready, on the monotonic clock, in ms
   * @param onAnswer called once for each call, with how it ended, after its slot was given back
   */
  constructor(readyBy: number, onAnswer: (call: Call, result: InvocationResult) => void) {
    this.#readyBy = readyBy
    this.#onAnswer = onAnswer
    // Nobody may wait for it: then its rejection must not count as unhandled.
    this.#ready.promise.catch(() => {})
  }

  get inFlight(): number {
    return this.#calls.size
  }

  get callsSent(): number {
    return this.#lastNumber
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
    const isLate = ({ overdueAtMs }: { readonly overdueAtMs: number }): boolean => overdueAtMs <= nowMs
    return (
      this.#isCallOverdue(nowMs) ||
      this.#codeCaches.values().some(isLate) ||
      this.#starts.values().some((all) => all.some(isLate))
    )
  }

  /** Thousands of calls may wait, so they are looked through only when one of them may be overdue. */
  #isCallOverdue(nowMs: number): boolean {
    if (nowMs < this.#nextOverdueAtMs) return false
    this.#nextOverdueAtMs = Number.POSITIVE_INFINITY
    for (const { overdueAtMs } of this.#calls.values()) this.#nextOverdueAtMs = Math.min(this.#nextOverdueAtMs, overdueAtMs)
    return nowMs >= this.#nextOverdueAtMs
  }

  /** Numbers a call and waits for how it ends. @returns false if the host is gone: `onAnswer` was called with that */
  expectAnswer(call: Call, overdueAtMs: number): boolean {
    call.number = ++this.#lastNumber
    call.usage = NO_USAGE
    if (this.#lost) {
      this.#end(call, hostLost(NO_USAGE, false))
      return false
    }
    this.#calls.set(call.number, call)
    this.dueBy(call, overdueAtMs)
    return true
  }

  /** Its host must have answered by then if it keeps its limits. */
  dueBy(call: Call, overdueAtMs: number): void {
    call.overdueAtMs = overdueAtMs
    if (overdueAtMs < this.#nextOverdueAtMs) this.#nextOverdueAtMs = overdueAtMs
  }

  /** The call of that number, if it waits for its answer. */
  callOf(invocation: number): Call | undefined {
    return this.#calls.get(invocation)
  }

  /** An answer to a number that does not wait (any more) is dropped: the host runs user code and may send anything. */
  answer(invocation: number, result: InvocationResult): void {
    const call = this.#calls.delete(invocation)
    if (call !== undefined) this.#end(call, result)
  }

  /** The host has not begun a call and will not. @returns the call, unless it does not wait (any more) */
  takeBack(invocation: number): Call | undefined {
    const call = this.#calls.delete(invocation)
    if (call === undefined) return undefined
    call.holder = undefined
    call.slot?.end()
    return call
  }

  /** The numbers of the calls that wait for their answers, from after a number on. */
  numbersAfter(invocation: number): number[] {
    return [...this.#calls.values()].flatMap(({ number }) => (number > invocation ? [number] : []))
  }

  /** A call waits for a timer or a fetch, so another may run. */
  waits(invocation: number): void {
    this.#calls.get(invocation)?.slot?.release()
  }

  /** What a call has used so far, in case the host is lost. */
  used(invocation: number, usage: InvocationUsage): void {
    const call = this.#calls.get(invocation)
    if (call !== undefined) call.usage = usage
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

  expectCodeCache(revision: string, overdueAtMs: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      if (this.#lost) resolve(undefined)
      else this.#codeCaches.set(revision, { resolve, overdueAtMs })
    })
  }

  codeCacheMade(revision: string, codeCache: Uint8Array | undefined): void {
    this.#codeCaches.get(revision)?.resolve(codeCache)
    this.#codeCaches.delete(revision)
  }

  /**
   * @param crash of a function that may have brought the host down: resolves with whether somebody's code did; undefined for
   * the others, which are answered at once
   */
  lose(crash: (functionName: string) => Promise<boolean> | undefined): void {
    this.#lost = true
    this.#ready.reject(new CarpoolError('no-host', 'The host process died before it was ready.'))
    const calls = [...this.#calls.values()]
    this.#calls.clear()
    for (const call of calls) {
      const untilKnown = crash(call.functionName)
      if (untilKnown === undefined) this.#end(call, hostLost(call.usage, false))
      else {
        call.slot?.end()
        void untilKnown.then((isSuspect) => this.#end(call, hostLost(call.usage, isSuspect)))
      }
    }
    for (const { resolve } of [...this.#starts.values()].flat()) resolve(LOST_START)
    for (const { resolve } of this.#codeCaches.values()) resolve(undefined)
    this.#starts.clear()
    this.#codeCaches.clear()
  }

  #end(call: Call, result: InvocationResult): void {
    call.holder = undefined
    call.slot?.end()
    this.#onAnswer(call, result)
  }
}

function hostLost(usage: InvocationUsage, isSuspect: boolean): InvocationResult {
  return { outcome: 'host-lost', start: 'warm', usage, detail: 'The host process died while it ran the invocation.', isSuspect }
}
