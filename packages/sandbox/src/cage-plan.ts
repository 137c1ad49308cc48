import { BUBBLEWRAP_LAYERS, type LayerName } from './layers.ts'

/** What is to be started inside of the cage. */
export interface CagedProgram {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** What the process reads on its standard input. Default: nothing. */
  readonly input?: string
}

/** Which layers to put around a process, and with what. */
export interface CagePlan {
  readonly wanted: ReadonlySet<LayerName>
  readonly tools: CageTools
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
  /** Where the kernel does not let bubblewrap mount a fresh /proc, the one of the machine is there to read. */
  readonly ownProc: boolean
  /** A compiled filter of system calls; the layer `seccomp`. */
  readonly filter: Uint8Array | undefined
}

/** Paths of the programs that put layers around another; absent: not installed. */
export interface CageTools {
  readonly sh?: string
  readonly setpriv?: string
  readonly bubblewrap?: string
}

/** Whether bubblewrap stands between the server and the host. */
export function usesBubblewrap({ wanted, tools }: Pick<CagePlan, 'wanted' | 'tools'>): boolean {
  return tools.bubblewrap !== undefined && [...wanted].some((name) => BUBBLEWRAP_LAYERS.has(name))
}

/** Processes between the one that is started and the host itself: bubblewrap stays outside, and is the first process of a new pid namespace. */
export function processesBefore(plan: CagePlan): number {
  if (!usesBubblewrap(plan)) return 0
  return plan.wanted.has('pid-namespace') ? 2 : 1
}
