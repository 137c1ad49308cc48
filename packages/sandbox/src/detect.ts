import { basename, isAbsolute } from 'node:path'
import { fallbackPlan, type SandboxedProgram, type SandboxPlan, usesBubblewrap, without } from './command.ts'
import { prepareHostGroups, type Controller, type GroupLimits, type HostGroups } from './control-groups.ts'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES, type LayerName, type LayerReport, LAYERS } from './layers.ts'
import { namespaces, openFiles, systemReport } from './probe.js'
import { openCanaries, runProbe, type Canaries, type ProbeResult } from './run-probe.ts'
import { seccompFilter } from './seccomp.ts'
import { processSandbox, type ProcessSandbox } from './spawn.ts'
import { bubblewrapProblem, findTools, unreadableBy } from './tools.ts'
import { remedyFor, unavailableLayers, type Machine, type Unavailable } from './unavailable.ts'
import { PERMISSION_ATTEMPTS, SYSTEM_ATTEMPTS, VERIFY, type Evidence } from './verify.ts'

/** What to put around hosts. */
export interface SandboxOptions {
  /** Leave out all that needs more than Node.js and a shell. */
  readonly isOff: boolean
  /** Path of the Node.js binary that hosts run. */
  readonly nodePath: string
  /** Flags of Node.js that hosts run with, those that give leave to read files left out. */
  readonly nodeFlags: readonly string[]
  /** Folders of the hosts' program. */
  readonly folders: readonly string[]
  /** User and group of hosts where the server is root; 0: its own. */
  readonly hostUid: number
  /** What one host may take. */
  readonly limits: GroupLimits
  /**
   * Leave the control groups of the machine as they are, although a server would divide its own and remove stale ones. Default:
   * false.
   */
  readonly onlyLooks?: boolean
  /** Gets a sentence if a host had to be started without its control groups. */
  readonly onProblem?: (text: string) => void
}

/** Starts host processes, each in a sandbox of its own, whose layers have been seen to work on this machine. */
export interface Sandbox extends ProcessSandbox {
  /** All layers, the innermost first. */
  readonly layers: readonly LayerReport[]
}

/** Processes and threads of all hosts together: more than their own limits come to, so it bounds only what gets around those. */
const USER_TASKS = 16_384

/**
 * Finds the best sandbox that works on this machine, by starting processes in it that try what the layers are to stop. Takes a
 * few tenths of a second of CPU, once; what it finds holds for the life of the server.
 */
export async function detectSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { isOff, nodePath, folders, hostUid, limits, onlyLooks, onProblem } = options
  const groups = isOff ? undefined : prepareHostGroups(limits, undefined, onlyLooks)
  const filter = seccompFilter(process.arch)
  const serverUid = process.getuid?.()
  const unreadable = unreadableBy(hostUid, [nodePath, ...folders])
  const hasOwnUser = serverUid === 0 && hostUid !== 0 && unreadable === undefined
  const { tools, bubblewrapProblem } = isOff
    ? { tools: findTools(), bubblewrapProblem: undefined }
    : await soundTools(hasOwnUser ? hostUid : undefined)
  const unavailable = unavailableLayers({
    isOff,
    platform: process.platform,
    tools,
    bubblewrapProblem,
    hasFilter: filter !== undefined,
    serverUid,
    hostUid,
    unreadable,
    missingGroups: groups?.missing ?? new Map(),
  })
  const best: SandboxPlan = {
    wanted: new Set(LAYER_NAMES.filter((name) => !unavailable.has(name))),
    tools,
    folders,
    libraries: sharedLibraries(),
    serverUid,
    uid: hostUid,
    userTasks: USER_TASKS,
    ownProc: true,
    filter,
  }
  const trial = await tryPlans(best, groups, options)
  const layers = LAYER_NAMES.map((name) => reportOf(name, trial, unavailable.get(name)))
  return { ...processSandbox(trial.plan, { groups, onProblem }), layers }
}

/** @param uid user that is to run them; undefined: the user of the server */
async function soundTools(uid: number | undefined): Promise<Pick<Machine, 'tools' | 'bubblewrapProblem'>> {
  const { bubblewrap, ...others } = findTools()
  const problem = bubblewrap === undefined ? undefined : await bubblewrapProblem(bubblewrap, uid)
  const isSound = bubblewrap !== undefined && problem === undefined
  return { tools: isSound ? { ...others, bubblewrap } : others, bubblewrapProblem: problem }
}

/** The libraries of the Node.js binary that runs this, and their loader, by the paths where it found them. */
export function sharedLibraries(): readonly string[] {
  const { sharedObjects = [] } = systemReport()
  return sharedObjects.filter((path) => isAbsolute(path) && !path.endsWith('.node'))
}

/** What came of trying plans. */
interface Trial {
  readonly plan: SandboxPlan
  /** Absent if nothing could be started at all. */
  readonly evidence: Evidence | undefined
  /** Why layers were given up: the error of the last plan with them that did not work. */
  readonly errors: ReadonlyMap<LayerName, string>
}

/** Tries the best plan, and those that it falls back to until one works; if none does, the same without a user of its own. */
async function tryPlans(best: SandboxPlan, groups: HostGroups | undefined, options: SandboxOptions): Promise<Trial> {
  const opened = await openCanaries()
  const errors = new Map<LayerName, string>()
  try {
    let hangs = false
    for (const first of best.wanted.has('user') ? [best, without(best, 'user')] : [best]) {
      let plan: SandboxPlan | undefined = first
      while (plan !== undefined) {
        // A bubblewrap that hangs once hangs in other ways too, and a server is waiting.
        if (hangs && usesBubblewrap(plan)) plan = without(plan, ...BUBBLEWRAP_LAYERS)
        const result = await tryPlan(plan, groups, options, opened.canaries)
        if (!('error' in result)) return { plan, evidence: result, errors }
        hangs ||= result.isLate === true
        for (const name of plan.wanted) errors.set(name, result.error)
        plan = fallbackPlan(plan, result.error)
      }
    }
    return { plan: best, evidence: undefined, errors }
  } finally {
    opened.close()
  }
}

async function tryPlan(
  plan: SandboxPlan,
  groups: HostGroups | undefined,
  { nodePath, nodeFlags }: SandboxOptions,
  canaries: Canaries,
): Promise<Evidence | { readonly error: string; readonly isLate?: boolean }> {
  const sandbox = processSandbox(plan, { groups })
  const plain: Pick<SandboxedProgram, 'nodePath' | 'nodeArguments'> = { nodePath, nodeArguments: [] }
  const [system, permission] = await Promise.all([
    runProbe(sandbox, plain, { canaries, attempts: SYSTEM_ATTEMPTS, wantsFacts: true }),
    runProbe(sandbox, { nodePath, nodeArguments: nodeFlags }, { canaries, attempts: PERMISSION_ATTEMPTS, wantsFacts: false }),
  ])
  if ('error' in system) return system
  const { results, facts } = system.answer
  if (facts === undefined) return { error: 'It reported nothing of itself.' }
  return {
    results,
    resultsWithPermission: 'answer' in permission ? permission.answer.results : permission.error,
    facts,
    serverFacts: { namespaces: namespaces(), openFiles: openFiles() },
    joined: { memory: hasJoined(system, 'memory'), pids: hasJoined(system, 'pids') },
    uid: plan.uid,
  }
}

function hasJoined({ groups, groupFolders }: Extract<ProbeResult, { answer: unknown }>, controller: Controller): boolean {
  const folder = groupFolders.get(controller)
  if (folder === undefined) return false
  return groups.some((line) => {
    const [, controllers = '', path = ''] = line.split(':')
    return ['', controller].some((one) => controllers.split(',').includes(one)) && basename(path) === basename(folder)
  })
}

function reportOf(name: LayerName, { plan, evidence, errors }: Trial, unavailable: Unavailable | undefined): LayerReport {
  const report = (state: LayerReport['state'], why: string, remedy: string = LAYERS[name].remedy): LayerReport => ({
    name,
    state,
    why,
    stops: LAYERS[name].stops,
    remedy,
  })
  if (unavailable?.state === 'off') return report('off', unavailable.why, unavailable.remedy)
  const error = errors.get(name)
  const remedy = error === undefined ? undefined : remedyFor(name, error)
  if (evidence !== undefined) {
    const { works, why } = VERIFY[name](evidence)
    // Also if something else put it on, as a container or the system's service manager.
    if (works) return report('on', why)
    if (name === 'pid-namespace' && !plan.ownProc)
      return report('unavailable', `${why} A fresh /proc could not be mounted: ${error}`, remedy)
    if (unavailable === undefined && plan.wanted.has(name)) return report('off', why)
  }
  if (unavailable !== undefined) return report('unavailable', unavailable.why, unavailable.remedy)
  return report('unavailable', `It was tried and does not work here: ${error}`, remedy)
}
