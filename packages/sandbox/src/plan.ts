import { BUBBLEWRAP_LAYERS, type LayerName } from './layers.ts'
import type { Tools } from './tools.ts'

/** Which layers to put around a process, and with what. */
export interface SandboxPlan {
  readonly wanted: ReadonlySet<LayerName>
  readonly tools: Tools
  /** Folders that the program may read; everything else is not there. */
  readonly folders: readonly string[]
  /** Shared libraries of the Node.js binary, by the paths where its loader looks for them. */
  readonly libraries: readonly string[]
  /** User of the server. */
  readonly serverUid: number | undefined
  /** User and group of the process; the layer `user`. */
  readonly uid: number
  /** Most processes and threads of that user, all hosts together. */
  readonly userTasks: number
  /** A fresh /proc in a new pid namespace; else the one of the machine is there to read. */
  readonly ownProc: boolean
  /** A compiled filter of system calls; the layer `seccomp`. */
  readonly filter: Uint8Array | undefined
}

/** Whether bubblewrap stands between the server and the host. */
export function usesBubblewrap({ wanted, tools }: Pick<SandboxPlan, 'wanted' | 'tools'>): boolean {
  return tools.bubblewrap !== undefined && [...wanted].some((name) => BUBBLEWRAP_LAYERS.has(name))
}

/** Processes between the one that is started and the host itself: bubblewrap stays outside, and is the first process of a new pid namespace. */
export function processesBefore(plan: SandboxPlan): number {
  if (!usesBubblewrap(plan)) return 0
  return plan.wanted.has('pid-namespace') ? 2 : 1
}

/** The plan without some of its layers. */
export function without(plan: SandboxPlan, ...names: readonly LayerName[]): SandboxPlan {
  return { ...plan, wanted: new Set([...plan.wanted].filter((name) => !names.includes(name))) }
}

/**
 * What to try where a plan did not work: it gives up what the error is about, else all that bubblewrap does, then setpriv. Pure.
 * @param error what bubblewrap, setpriv or Node.js printed, or the system's error
 * @returns undefined if nothing is left to give up but the user
 */
export function fallbackPlan(plan: SandboxPlan, error: string): SandboxPlan | undefined {
  if (usesBubblewrap(plan)) {
    // Where parts of /proc are covered up, as in containers, the kernel lets nobody mount a fresh one.
    if (plan.ownProc && plan.wanted.has('pid-namespace') && /mount proc/.test(error)) return { ...plan, ownProc: false }
    if (plan.wanted.has('seccomp') && /seccomp/i.test(error)) return without(plan, 'seccomp')
    return without(plan, ...BUBBLEWRAP_LAYERS)
  }
  return plan.wanted.has('no-new-privileges') ? without(plan, 'no-new-privileges') : undefined
}
