/**
 * The kill ladder: measures against an isolate or a host that does harm, each taken when the one before has not helped. There is
 * no way down; an entry that ends leaves the ladder.
 *
 * ```
 *          soft limit          hard limit           still entered, or V8 gave up      nothing left to save, or out of time
 * running ────────────▶ retiring ───────────▶ ended ───────────────────────▶ poisoned ─────────────────────────────▶ killed
 *                       no new calls for      isolate disposed, its          no new calls for the process,           SIGKILL
 *                       the isolate           calls end with the reason      another takes its place
 * ```
 *
 * Two watchdogs climb it. The one in the host looks at every isolate that is entered, every 10 ms
 * (`host/src/limits/watchdog.ts`), up to `poisoned`, which it reports to the server. The one in the server looks at every host
 * (`packages/fleet/src/health/host-watchdog.ts`): it takes the word of a host that
 * says it is poisoned, takes one for poisoned that says nothing any more, and kills.
 */
export const RUNGS = ['running', 'retiring', 'ended', 'poisoned', 'killed'] as const
export type Rung = (typeof RUNGS)[number]

/** What is known of an isolate that is entered. */
export interface EntryEvidence {
  readonly of: 'entry'
  /** CPU time of whatever has the limit, as far as it is known, in ms. */
  readonly cpuMs: number
  readonly cpuLimitMs: number
  /** Since the batch began, in ms. */
  readonly ranMs: number
  readonly wallLimitMs: number
}

/** What is known of an isolate that was disposed and whose thread has not left it. */
export interface DisposedEvidence {
  readonly of: 'disposed'
  /** CPU time that the thread has used there since, in ms; undefined if that cannot be known. */
  readonly cpuMs: number | undefined
  /** Since it was disposed, in ms. */
  readonly endedMs: number
  /** V8 has given the isolate up, and parked the thread for good. */
  readonly gaveUp: boolean
}

/** What the server knows of a host process. */
export interface HostEvidence {
  readonly of: 'host'
  readonly inFlight: number
  /** How long it has said nothing, in ms. */
  readonly silentMs: number
  /** Whether it owes an answer that is past its limits and all grace. */
  readonly isOverdue: boolean
  /** How long it has been poisoned, in ms; undefined if it is not. */
  readonly poisonedMs: number | undefined
  /** How long nothing has been in flight there, in ms; 0 if something is. */
  readonly idleMs: number
  /** Resident memory of the process. */
  readonly memoryBytes: number
  /** What it should stay below by giving up idle isolates; 0: no limit. */
  readonly memoryBudgetBytes: number
}

export type Evidence = EntryEvidence | DisposedEvidence | HostEvidence

/** Why something climbed. */
export type Reason = 'cpu' | 'wall' | 'memory' | 'gave-up' | 'stuck' | 'silent' | 'overdue' | 'drained' | 'drain-over'

export interface Step {
  readonly rung: Rung
  /** Absent if it stays where it was. */
  readonly reason?: Reason
}

export interface KillPolicy {
  /** Share of a limit of CPU or memory from which an isolate gets no new calls. The hard limit of memory is V8's own. */
  readonly softShare: number
  /** An entry is this far beyond its limit before it is ended, in ms of CPU. */
  readonly cpuSlackMs: number
  /** An entry may go on for this long past the wall limit, in ms: most come to an end by themselves. */
  readonly wallGraceMs: number
  /**
   * A thread has this much CPU time to leave an isolate that was disposed, in ms. Most take less than 5. But V8 looks for its
   * end in a loop only once so much of its code has run, not so much time: one that calls JSON.parse with 60 kB took 240.
   */
  readonly disposeGraceMs: number
  /** and this long if it does not get any, in ms. */
  readonly disposeWaitMs: number
  /** A host that has work and says nothing for so long is poisoned, in ms, */
  readonly silentMs: number
  /** and one that says nothing for so long is killed with the calls in it. */
  readonly deadMs: number
  /** How long the other calls of a poisoned host have to end, in ms: what is stuck there takes up to a core meanwhile. */
  readonly drainMs: number
  /** A poisoned host without calls is killed after so long, in ms: what its last calls have used is told within that time. */
  readonly settleMs: number
  /** A host that holds this many times its budget is poisoned: not all memory counts against the limits of isolates. */
  readonly memoryFactor: number
}

export const KILL_POLICY: KillPolicy = {
  softShare: 0.8,
  cpuSlackMs: 10,
  wallGraceMs: 25,
  disposeGraceMs: 500,
  disposeWaitMs: 2_000,
  silentMs: 5_000,
  deadMs: 10_000,
  drainMs: 10_000,
  settleMs: 500,
  memoryFactor: 1.25,
}

/** The next rung, by what is known now. Pure: the evidence has all times in it. */
export function climb(rung: Rung, evidence: Evidence, policy: KillPolicy = KILL_POLICY): Step {
  const next = reach(evidence, policy)
  return RUNGS.indexOf(next.rung) > RUNGS.indexOf(rung) ? next : { rung }
}

/** How far up the evidence alone leads. */
function reach(evidence: Evidence, policy: KillPolicy): Step {
  switch (evidence.of) {
    case 'entry': {
      const { cpuMs, cpuLimitMs, ranMs, wallLimitMs } = evidence
      if (cpuMs >= cpuLimitMs + policy.cpuSlackMs) return { rung: 'ended', reason: 'cpu' }
      if (ranMs >= wallLimitMs + policy.wallGraceMs) return { rung: 'ended', reason: 'wall' }
      return cpuMs >= cpuLimitMs * policy.softShare ? { rung: 'retiring', reason: 'cpu' } : { rung: 'running' }
    }
    case 'disposed':
      if (evidence.gaveUp) return { rung: 'poisoned', reason: 'gave-up' }
      return (evidence.cpuMs ?? evidence.endedMs) >= policy.disposeGraceMs || evidence.endedMs >= policy.disposeWaitMs
        ? { rung: 'poisoned', reason: 'stuck' }
        : { rung: 'running' }
    case 'host':
      return reachOfHost(evidence, policy)
  }
}

function reachOfHost(
  { inFlight, silentMs, isOverdue, poisonedMs, idleMs, memoryBytes, memoryBudgetBytes }: HostEvidence,
  { silentMs: poisonAfterMs, deadMs, drainMs, settleMs, memoryFactor }: KillPolicy,
): Step {
  if (isOverdue) return { rung: 'killed', reason: 'overdue' }
  const owes = inFlight > 0
  if (owes && silentMs >= deadMs) return { rung: 'killed', reason: 'silent' }
  if (poisonedMs !== undefined) {
    if (poisonedMs >= drainMs) return { rung: 'killed', reason: 'drain-over' }
    if (!owes && idleMs >= settleMs) return { rung: 'killed', reason: 'drained' }
  }
  if (memoryBudgetBytes > 0 && memoryBytes > memoryBudgetBytes * memoryFactor) return { rung: 'poisoned', reason: 'memory' }
  return owes && silentMs >= poisonAfterMs ? { rung: 'poisoned', reason: 'silent' } : { rung: 'running' }
}
