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

/**
 * Processes between the one that is started and the host itself: bubblewrap stays outside, and is the first process of a new
 * pid namespace.
 */
export function processesBefore(plan: SandboxPlan): number {
  if (!usesBubblewrap(plan)) return 0
  return plan.wanted.has('pid-namespace') ? 2 : 1
}

/** The plan without some of its layers. */
export function without(plan: SandboxPlan, ...names: readonly LayerName[]): SandboxPlan {
  return { ...plan, wanted: new Set([...plan.wanted].filter((name) => !names.includes(name))) }
}

/**
 * What to try where a plan did not work: it gives up what the error is about; if it says nothing, the filter, then a fresh
 * /proc; then all that bubblewrap does, then setpriv. Pure.
 * @param error what bubblewrap, setpriv or Node.js printed, or the system's error
 * @returns undefined if nothing is left to give up but the user
 */
export function fallbackPlan(plan: SandboxPlan, error: string): SandboxPlan | undefined {
  if (usesBubblewrap(plan)) {
    const mountsProc = plan.ownProc && plan.wanted.has('pid-namespace')
    // Where parts of /proc are covered up, as in containers, the kernel lets nobody mount a fresh one.
    if (mountsProc && /mount proc/.test(error)) return { ...plan, ownProc: false }
    if (plan.wanted.has('seccomp') && /seccomp/i.test(error)) return without(plan, 'seccomp')
    if (/mount proc|namespace|uid map/i.test(error)) return without(plan, ...BUBBLEWRAP_LAYERS)
    // It says nothing of what it is about, such as the signal by which a filter ends a process.
    if (plan.wanted.has('seccomp')) return without(plan, 'seccomp')
    if (mountsProc) return { ...plan, ownProc: false }
    return without(plan, ...BUBBLEWRAP_LAYERS)
  }
  return plan.wanted.has('no-new-privileges') ? without(plan, 'no-new-privileges') : undefined
}

/** What is to be started in the sandbox. */
export interface SandboxedProgram {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** What the process reads on its standard input. Default: nothing. */
  readonly input?: string
}

/** The socket to the server. */
const SOCKET_FD = 3

/** How to start a process in its sandbox. */
export interface SandboxCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly options: {
    readonly cwd: string
    readonly env: Readonly<Record<string, string>>
    /** A session and process group of its own: signals of a terminal are not meant for it. */
    readonly detached: true
    readonly uid?: number
    readonly gid?: number
  }
  /** Descriptor from which the filter of system calls is to be read. */
  readonly filterFd: number | undefined
}

/**
 * Wraps a program in a chain of others, each of which adds layers and then becomes the next: a shell, bubblewrap or setpriv,
 * Node.js. Pure.
 * @param joins how many descriptors from 4 on are open on the `cgroup.procs` of control groups, to be joined and closed
 */
export function sandboxCommand(program: SandboxedProgram, plan: SandboxPlan, joins = 0): SandboxCommand {
  const { wanted, uid } = plan
  const hasFilter = usesBubblewrap(plan) && wanted.has('seccomp') && plan.filter !== undefined
  const filterFd = hasFilter ? SOCKET_FD + joins + 1 : undefined
  const node = [program.nodePath, ...program.nodeArguments]
  const chain = [...shell(plan, joins), ...privileges(plan, program.nodePath, filterFd), ...node]
  const [command = program.nodePath, ...args] = chain
  return {
    command,
    args,
    options: {
      // The user of the host may not be allowed to enter the folder of the server.
      cwd: '/',
      env: {},
      detached: true,
      ...(wanted.has('user') && { uid, gid: uid }),
    },
    filterFd,
  }
}

/** Descriptors that the host may have open: its own files while it loads, and what its threads wake each other with. */
const MAX_DESCRIPTORS = 512
/** The system ends processes with a high figure first when memory is short; the server has 0. */
const OOM_SCORE = 500

/** Limits that a shell can set. It is on every machine, and becomes the next program rather than its parent. */
function shell({ wanted, tools, userTasks }: SandboxPlan, joins: number): readonly string[] {
  if (tools.sh === undefined) return []
  const joined = Array.from({ length: joins }, (_, index) => SOCKET_FD + 1 + index)
  const lines = [
    // 0 stands for the process that writes. All that it starts is in the group from its first moment.
    ...joined.map((fd) => `echo 0 2>/dev/null >&${fd}; exec ${fd}>&-`),
    ...(wanted.has('rlimits')
      ? [
          'ulimit -c 0',
          'ulimit -f 0',
          `ulimit -n ${MAX_DESCRIPTORS} 2>/dev/null`,
          // This counts for the user, so it is of use only to one that has nothing but hosts. Shells differ in its name.
          ...(wanted.has('user') ? [`{ ulimit -u ${userTasks} || ulimit -p ${userTasks}; } 2>/dev/null`] : []),
          `{ echo ${OOM_SCORE} >/proc/self/oom_score_adj; } 2>/dev/null`,
        ]
      : []),
    'unset PWD OLDPWD SHLVL',
    'exec "$@"',
  ]
  return [tools.sh, '-c', lines.join('\n'), 'carpool-host']
}

/** The program that takes rights and namespaces away. */
function privileges(plan: SandboxPlan, nodePath: string, filterFd: number | undefined): readonly string[] {
  const { wanted, tools, serverUid } = plan
  if (usesBubblewrap(plan)) return [tools.bubblewrap!, ...bubblewrapArguments(plan, nodePath, filterFd), '--']
  if (!wanted.has('no-new-privileges') || tools.setpriv === undefined) return []
  // A process of root gets all capabilities with each new program, but for those outside of the bounding set.
  const bounding = serverUid === 0 && !wanted.has('user') ? ['--bounding-set=-all'] : []
  return [tools.setpriv, '--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', ...bounding, '--pdeathsig=KILL', '--']
}

/**
 * Arguments of bubblewrap before the program's own. It takes all capabilities and the way to new ones in any case, and ends the
 * host when it ends itself or the server does. What is not named here is not there: no /dev, no /tmp, no shell.
 */
function bubblewrapArguments(plan: SandboxPlan, nodePath: string, filterFd: number | undefined): readonly string[] {
  const { wanted } = plan
  return [
    '--unshare-user',
    ...(wanted.has('network-namespace') ? ['--unshare-net'] : []),
    ...(wanted.has('pid-namespace') ? ['--unshare-pid'] : []),
    ...(wanted.has('ipc-namespace') ? ['--unshare-ipc', '--unshare-uts', '--hostname', 'host', '--unshare-cgroup-try'] : []),
    '--die-with-parent',
    '--new-session',
    '--cap-drop',
    'ALL',
    ...mounts(plan, nodePath),
    ...(filterFd === undefined ? [] : ['--seccomp', String(filterFd)]),
  ]
}

/** Without them a C library may not find the others, or Node.js' addons not which C library there is. */
const SMALL_FILES = ['/etc/ld.so.cache', '/etc/alpine-release']

function mounts({ wanted, folders, libraries, ownProc }: SandboxPlan, nodePath: string): readonly string[] {
  // Node.js reads there how much memory it has.
  const proc = ownProc && wanted.has('pid-namespace') ? ['--proc', '/proc'] : ['--ro-bind', '/proc', '/proc']
  if (!wanted.has('mount-namespace'))
    return ['--dev-bind', '/', '/', ...(wanted.has('pid-namespace') ? proc : []), '--chdir', '/']
  const readOnly = [...libraries, nodePath, ...folders].flatMap((path) => ['--ro-bind', path, path])
  const ifPresent = SMALL_FILES.flatMap((path) => ['--ro-bind-try', path, path])
  return [...readOnly, ...ifPresent, ...proc, '--remount-ro', '/', '--chdir', '/']
}
