import { totalmem } from 'node:os'
import { KILL_POLICY } from '@carpool/core'
import { Account } from '../accounting/account.ts'
import type { IsolatePool } from '../isolates/isolate-pool.ts'

/** How much an isolate may run before its memory is measured again, in ns of CPU. */
const EVERY_CPU_NS = 20_000_000
/** The same in time, for one that runs seldom, in ms. */
const EVERY_MS = 1_000
/** How much one that grows fast runs at least between two measurements, in ns of CPU: ten times what one of them takes. */
const LEAST_CPU_NS = 500_000
/** To find out what is garbage takes no more than this share of the CPU of the isolate, unless it would be full before that. */
const COLLECT_SHARE = 0.1

/**
 * Decides when to measure the memory of an isolate, and remembers the most. What it takes from the system the addon sees at once;
 * this is for what it fills up of what it has.
 */
export class MemoryWatch {
  /** What the measurements are charged to. */
  readonly account = new Account()
  /** Of the function, once it has one. */
  limitBytes = Number.MAX_SAFE_INTEGER
  #peakBytes = 0
  #measuredBytes = 0
  #measuredAtMs = Number.NEGATIVE_INFINITY
  /** CPU that it has used since it was measured. */
  #cpuSinceNs = 0
  /** How much of that makes it due again. */
  #dueCpuNs = LEAST_CPU_NS
  #isMeasuring = false
  /** When garbage was collected last, and when it may be again, in CPU time of the isolate. */
  #collectedAtNs = 0
  #collectFromNs = 0
  /** What it held without that garbage. */
  #leftBytes = 0
  /** What it holds was near its limit without garbage: it would be again, so no more is spent on that. */
  isFull = false

  get peakKb(): number {
    return Math.ceil(this.#peakBytes / 1024)
  }

  /**
   * Whether to measure now. After a yes it is not due until {@link record}.
   * @param cpuNs of the batch that has ended
   */
  isDue(cpuNs: number, nowMs: number): boolean {
    this.#cpuSinceNs += cpuNs
    const isDue = !this.#isMeasuring && (this.#cpuSinceNs >= this.#dueCpuNs || nowMs - this.#measuredAtMs >= EVERY_MS)
    this.#isMeasuring ||= isDue
    return isDue
  }

  /** Whether so much is near its limit. */
  isNear(bytes: number): boolean {
    return bytes >= this.#softBytes
  }

  /**
   * Whether to collect garbage before its size counts.
   * @param usedNs CPU that the isolate has used so far
   */
  mayCollect(usedNs: number): boolean {
    return !this.isFull && usedNs >= this.#collectFromNs
  }

  /**
   * Garbage was collected. One that has grown so fast since the last time that it would be full before the share allows for it is
   * looked at again by then.
   * @param tookNs CPU that it took
   * @param bytes what is left
   */
  collected(usedNs: number, tookNs: number, bytes: number): void {
    const fullInNs = timeToGrowNs(this.#softBytes - bytes, bytes - this.#leftBytes, usedNs - this.#collectedAtNs)
    this.#collectFromNs = usedNs + Math.min(tookNs / COLLECT_SHARE, fullInNs)
    this.#collectedAtNs = usedNs
    this.#leftBytes = bytes
    this.isFull = this.isNear(bytes)
  }

  /** It held so much. */
  saw(bytes: number): void {
    if (bytes > this.#peakBytes) this.#peakBytes = bytes
  }

  /**
   * It was measured. It is again once it is half of the way to its limit, at its pace since the last time. After twice the time
   * at most: it may fill again what garbage has left.
   */
  record(bytes: number, nowMs: number): void {
    this.saw(bytes)
    const fullInNs = timeToGrowNs(this.limitBytes - bytes, bytes - this.#measuredBytes, this.#cpuSinceNs)
    this.#dueCpuNs = Math.min(EVERY_CPU_NS, 2 * this.#dueCpuNs, Math.max(LEAST_CPU_NS, fullInNs / 2))
    this.#measuredBytes = bytes
    this.#measuredAtMs = nowMs
    this.#cpuSinceNs = 0
    this.#isMeasuring = false
  }

  get #softBytes(): number {
    return KILL_POLICY.softShare * this.limitBytes
  }
}

/** How long it takes to grow by so many bytes, at the pace of the last growth; for ever if there was none. */
function timeToGrowNs(bytes: number, grownBytes: number, grownInNs: number): number {
  return grownBytes > 0 ? (bytes / grownBytes) * grownInNs : Number.POSITIVE_INFINITY
}

/** Idle isolates leave once RSS is above the budget, until it is at this share of it. */
const BUDGET_STOP = 0.95
/** They also leave once less than this share of the machine's memory is available, until there is somewhat more. */
const AVAILABLE_START = 0.1
const AVAILABLE_STOP = 0.12
/** How long RSS has to fall before it says anything about what was given up, in ms; at least, and at most. */
const MIN_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 32_000
/** RSS has followed if it fell by this share of what was given up, */
const FOLLOWED = 0.5
/** and it grows, whatever was given up, if it rose by this share of itself. */
const GREW = 0.02

/** Memory of a host and its machine at one moment, in bytes. */
export interface MemorySample {
  /** Monotonic, in ms. */
  readonly atMs: number
  /** Of the host process. */
  readonly rssBytes: number
  /** What RSS may be; 0: whatever the machine has. */
  readonly budgetBytes: number
  /**
   * What the machine, or the container if that has a limit, can still give without swapping. Page cache that it can drop is
   * available.
   */
  readonly availableBytes: number
  /** What the machine or the container has; 0 if that is not known. */
  readonly totalBytes: number
  /** What the idle isolates hold that may leave. */
  readonly evictableBytes: number
}

/** When isolates were last given up. */
interface LastRelief {
  readonly atMs: number
  /** RSS before. */
  readonly rssBytes: number
  /** What RSS should have fallen by. */
  readonly bytes: number
  /** There was no more to give up. */
  readonly wasAll: boolean
}

/** What the policy remembers from one sample to the next. */
export interface ReliefMemory {
  readonly isOverBudget: boolean
  readonly isMachineShort: boolean
  /** Absent while RSS has nothing to show for it. */
  readonly last: LastRelief | undefined
  /** How long after that nothing more is given up. */
  readonly pauseMs: number
  readonly isHelplessReported: boolean
}

export const NO_PRESSURE: ReliefMemory = {
  isOverBudget: false,
  isMachineShort: false,
  last: undefined,
  pauseMs: MIN_PAUSE_MS,
  isHelplessReported: false,
}

export interface ReliefDecision {
  /** How many bytes of idle isolates to give up now; never more than there are. */
  readonly giveUpBytes: number
  readonly pressure: 'none' | 'budget' | 'machine'
  /**
   * There is pressure, and nothing left to give up or all of it was given up in vain. Reported once, until the pressure has
   * ended.
   */
  readonly isHelpless: boolean
}

/**
 * How much of the idle isolates a host gives up, by its RSS and by what the machine has left.
 *
 * What an isolate held shows in RSS later and not in full, or not at all: V8 and malloc keep what is freed for what comes next
 * (isolated-vm issues 241 and 281; measured with Node 26: RSS falls by 0.3 of an empty guest's 1.4 MiB, or by 1.3 if the process
 * runs with `--no-memory-pool-share-memory-on-teardown`). Whoever goes by RSS alone gives up everything and gains nothing. So
 * nothing more is given up for a second, in which RSS may fall. If it then stands where it was, what was freed is free within the
 * process: the pause doubles, up to 32 s, and below the budget that is the end of it. If RSS fell, or grew, the next pause is a
 * second again.
 *
 * Of what the machine lacks a host gives up its share, by its RSS in all that is in use: other hosts see the same lack at the
 * same time.
 * @returns the decision, and the memory for the next sample; the first is {@link NO_PRESSURE}
 */
export function decideRelief(
  sample: MemorySample,
  memory: ReliefMemory,
): { readonly decision: ReliefDecision; readonly memory: ReliefMemory } {
  const { atMs, rssBytes, evictableBytes } = sample
  const { last } = memory
  const isPausing = last !== undefined && atMs - last.atMs < memory.pauseMs
  const stands = !isPausing && last !== undefined && standsStill(rssBytes, last)
  const need = needOf(sample, memory, stands)
  const { pressure } = need
  const seen: ReliefMemory = {
    ...memory,
    isOverBudget: need.isOverBudget,
    isMachineShort: need.isMachineShort,
    isHelplessReported: memory.isHelplessReported && pressure !== 'none',
  }
  if (isPausing || pressure === 'none') {
    const isOver = !isPausing && need.isRelaxed
    return { decision: { giveUpBytes: 0, pressure, isHelpless: false }, memory: isOver ? NO_PRESSURE : seen }
  }
  const isHelpless = evictableBytes <= 0 || last?.wasAll === true
  const giveUpBytes = Math.min(need.bytes, Math.max(0, evictableBytes))
  return {
    decision: { giveUpBytes, pressure, isHelpless: isHelpless && !memory.isHelplessReported },
    memory: {
      ...seen,
      isHelplessReported: memory.isHelplessReported || isHelpless,
      ...(giveUpBytes > 0 && {
        last: { atMs, rssBytes, bytes: giveUpBytes, wasAll: giveUpBytes === evictableBytes },
        pauseMs: stands ? Math.min(2 * memory.pauseMs, MAX_PAUSE_MS) : MIN_PAUSE_MS,
      }),
    },
  }
}

interface Need {
  readonly isOverBudget: boolean
  readonly isMachineShort: boolean
  readonly pressure: ReliefDecision['pressure']
  /** Nothing is above the marks at which relief ends. */
  readonly isRelaxed: boolean
  /** What this host should give up for it. */
  readonly bytes: number
}

function needOf(
  { rssBytes, budgetBytes, availableBytes, totalBytes }: MemorySample,
  memory: ReliefMemory,
  stands: boolean,
): Need {
  const overBytes = budgetBytes > 0 ? rssBytes - BUDGET_STOP * budgetBytes : 0
  const lackBytes = AVAILABLE_STOP * totalBytes - availableBytes
  const goesOn = (was: boolean, bytes: number): boolean => was && bytes > 0 && !stands
  const isOverBudget = (budgetBytes > 0 && rssBytes > budgetBytes) || goesOn(memory.isOverBudget, overBytes)
  const isMachineShort = availableBytes < AVAILABLE_START * totalBytes || goesOn(memory.isMachineShort, lackBytes)
  const share = Math.min(1, rssBytes / Math.max(1, totalBytes - availableBytes))
  const bytes = Math.max(isOverBudget ? overBytes : 0, isMachineShort ? lackBytes * share : 0)
  return {
    isOverBudget,
    isMachineShort,
    pressure: isOverBudget ? 'budget' : isMachineShort ? 'machine' : 'none',
    isRelaxed: overBytes <= 0 && lackBytes <= 0,
    bytes: Math.ceil(bytes),
  }
}

/** Whether RSS is about where it was before isolates were given up. */
function standsStill(rssBytes: number, last: LastRelief): boolean {
  return last.rssBytes - rssBytes < FOLLOWED * last.bytes && rssBytes <= (1 + GREW) * last.rssBytes
}

/** Gives up idle isolates when the memory of the process or the machine gets short. */
export class MemoryRelief {
  readonly #pool: Pick<IsolatePool<never>, 'evictableBytes' | 'relieve'>
  readonly #budgetBytes: number
  readonly #onHelpless: (text: string) => void
  #memory = NO_PRESSURE

  /** @param onHelpless called once when there is nothing more to give up */
  constructor(
    pool: Pick<IsolatePool<never>, 'evictableBytes' | 'relieve'>,
    budgetBytes: number,
    onHelpless: (text: string) => void,
  ) {
    this.#pool = pool
    this.#budgetBytes = budgetBytes
    this.#onHelpless = onHelpless
  }

  /** To be called about once a second. */
  check(): void {
    const rssBytes = process.memoryUsage.rss()
    const { decision, memory } = decideRelief(
      {
        atMs: performance.now(),
        rssBytes,
        budgetBytes: this.#budgetBytes,
        availableBytes: process.availableMemory(),
        // Where there is no limit it is larger than any machine.
        totalBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
        evictableBytes: this.#pool.evictableBytes,
      },
      this.#memory,
    )
    this.#memory = memory
    if (decision.giveUpBytes > 0) this.#pool.relieve(decision.giveUpBytes)
    if (!decision.isHelpless) return
    const [usedMb, budgetMb] = [rssBytes, this.#budgetBytes].map((bytes) => Math.round(bytes / 1024 / 1024))
    this.#onHelpless(
      decision.pressure === 'budget'
        ? `The host takes ${usedMb} MiB, its share is ${budgetMb} MiB, and there is no idle isolate left to give up.`
        : `The machine is short of memory, and there is no idle isolate left to give up; the host takes ${usedMb} MiB.`,
    )
  }
}
