import { basename } from 'node:path'
import { bubblewrapProblem } from './bubblewrap-problem.ts'
import { createCage, type Cage } from './cage.ts'
import { usesBubblewrap, type CagePlan } from './cage-plan.ts'
import { candidates } from './candidates.ts'
import { prepareHostGroups, type GroupLimits, type HostGroups } from './cgroup/host-groups.ts'
import type { Controller } from './cgroup/own-groups.ts'
import { findTools } from './find-tools.ts'
import { JUDGES, PERMISSION_ATTEMPTS, SYSTEM_ATTEMPTS, type Evidence } from './judge.ts'
import { LAYER_NAMES, LAYERS, type LayerName, type LayerReport } from './layers.ts'
import { obstacles, type Obstacle, type Surroundings } from './obstacles.ts'
import type { Canaries } from './probe/attempts.ts'
import { openCanaries } from './probe/canaries.ts'
import { ownFacts } from './probe/facts.ts'
import { runProbe, type ProbeResult } from './probe/run-probe.ts'
import { PROBE_FOLDERS } from './probe-files.ts'
import { unreadableBy } from './readable-by.ts'
import { remedyOf } from './remedy-of.ts'
import { seccompFilter } from './seccomp/filter.ts'
import { sharedLibraries } from './shared-libraries.ts'

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
  /** Leave the control groups of the machine as they are, although a server would divide its own and remove stale ones. Default: false. */
  readonly onlyLooks?: boolean
  /** Told in a sentence if a host had to be started without its control groups. */
  readonly onProblem?: (text: string) => void
}

/** A cage, and what is known of it. */
export interface Sandbox {
  /** All layers, the innermost first. */
  readonly layers: readonly LayerReport[]
  /** To start hosts in. */
  readonly cage: Cage
}

/** Processes and threads of all hosts together: more than their own limits come to, so it bounds only what gets around those. */
const USER_TASKS = 16_384

/**
 * Finds the best cage that works on this machine, by starting processes in it that try what the layers are to stop. Takes a few tenths of a
 * second of CPU, once; what it finds holds for the life of the server.
 */
export async function detectLayers(options: SandboxOptions): Promise<Sandbox> {
  const { isOff, nodePath, folders, hostUid, limits, onlyLooks, onProblem } = options
  const groups = isOff ? undefined : prepareHostGroups(limits, undefined, onlyLooks)
  const filter = seccompFilter(process.arch)
  const serverUid = process.getuid?.()
  const unreadable = unreadableBy(hostUid, [nodePath, ...folders, ...PROBE_FOLDERS])
  const hasOwnUser = serverUid === 0 && hostUid !== 0 && unreadable === undefined
  const { tools, bubblewrapProblem } = isOff ? { tools: findTools() } : await soundTools(hasOwnUser ? hostUid : undefined)
  const missing = obstacles({
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
  const best: CagePlan = {
    wanted: new Set(LAYER_NAMES.filter((name) => !missing.has(name))),
    tools,
    folders: [...folders, ...PROBE_FOLDERS],
    libraries: sharedLibraries(),
    serverUid,
    uid: hostUid,
    userTasks: USER_TASKS,
    ownProc: true,
    filter,
  }
  const { plan, evidence, complaints } = await tryPlans(best, groups, options)
  const parts = { ...(groups && { groups }), ...(onProblem && { onProblem }) }
  return {
    layers: LAYER_NAMES.map((name) => reportOf(name, { plan, evidence, complaints, obstacle: missing.get(name) })),
    // Hosts have no use for the probe.
    cage: createCage({ ...plan, folders }, parts),
  }
}

/** @param uid who is to run them; undefined: the user of the server */
async function soundTools(uid: number | undefined): Promise<Pick<Surroundings, 'tools' | 'bubblewrapProblem'>> {
  const { bubblewrap, ...others } = findTools()
  const problem = bubblewrap === undefined ? undefined : await bubblewrapProblem(bubblewrap, uid)
  const isSound = bubblewrap !== undefined && problem === undefined
  return { tools: isSound ? { ...others, bubblewrap } : others, bubblewrapProblem: problem }
}

/** What came of trying plans. */
interface Trial {
  readonly plan: CagePlan
  /** Absent if nothing could be started at all. */
  readonly evidence: Evidence | undefined
  /** Why layers were given up: what the last plan with them that did not work had to say. */
  readonly complaints: ReadonlyMap<LayerName, string>
}

async function tryPlans(best: CagePlan, groups: HostGroups | undefined, options: SandboxOptions): Promise<Trial> {
  const opened = await openCanaries()
  const complaints = new Map<LayerName, string>()
  try {
    let isStuck = false
    for (const plan of candidates(best)) {
      // Who hangs once hangs in other ways too, and a server is waiting.
      if (isStuck && usesBubblewrap(plan)) continue
      const result = await tryPlan(plan, groups, options, opened.canaries)
      if ('evidence' in result) return { plan, evidence: result.evidence, complaints }
      isStuck ||= result.isLate === true
      for (const name of plan.wanted) complaints.set(name, result.complaint)
    }
    return { plan: best, evidence: undefined, complaints }
  } finally {
    opened.close()
  }
}

async function tryPlan(
  plan: CagePlan,
  groups: HostGroups | undefined,
  { nodePath, nodeFlags }: SandboxOptions,
  canaries: Canaries,
): Promise<{ readonly evidence: Evidence } | { readonly complaint: string; readonly isLate?: boolean }> {
  const cage = createCage(plan, groups && { groups })
  const mayReadItself = PROBE_FOLDERS.map((folder) => `--allow-fs-read=${folder}*`)
  const [system, permission] = await Promise.all([
    runProbe(cage, { nodePath, nodeArguments: [] }, { canaries, attempts: SYSTEM_ATTEMPTS, tellsFacts: true }),
    runProbe(
      cage,
      { nodePath, nodeArguments: [...nodeFlags, ...mayReadItself] },
      { canaries, attempts: PERMISSION_ATTEMPTS, tellsFacts: false },
    ),
  ])
  if ('complaint' in system) return system
  const { facts } = system.answer
  if (facts === undefined) return { complaint: 'It told nothing of itself.' }
  return {
    evidence: {
      results: system.answer.results,
      resultsWithPermission: 'answer' in permission ? permission.answer.results : permission.complaint,
      facts,
      serverFacts: ownFacts(),
      joined: { memory: hasJoined(system, 'memory'), pids: hasJoined(system, 'pids') },
      uid: plan.uid,
    },
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

function reportOf(
  name: LayerName,
  { plan, evidence, complaints, obstacle }: Trial & { readonly obstacle: Obstacle | undefined },
): LayerReport {
  const report = (state: LayerReport['state'], why: string, remedy?: string): LayerReport => ({
    name,
    state,
    why,
    stops: LAYERS[name].stops,
    remedy: remedy ?? LAYERS[name].remedy,
  })
  if (obstacle?.state === 'off') return report('off', obstacle.why, obstacle.remedy)
  const complaint = complaints.get(name)
  const remedy = complaint === undefined ? undefined : remedyOf(name, complaint)
  if (evidence !== undefined) {
    const { holds, why } = JUDGES[name](evidence)
    // Also if somebody else saw to it, as a container or the system's service manager.
    if (holds) return report('on', why)
    const lacksProc = name === 'pid-namespace' && !plan.ownProc
    if (lacksProc) return report('unavailable', `${why} A fresh /proc could not be mounted: ${complaint}`, remedy)
    if (obstacle === undefined && plan.wanted.has(name)) return report('off', why)
  }
  if (obstacle !== undefined) return report('unavailable', obstacle.why, obstacle.remedy)
  return report('unavailable', `It was tried and does not work here: ${complaint}`, remedy)
}
