import type { CallFrame, CpuProfile, ProfileNode, TakenProfile } from './profile-types.ts'
import { PROFILER, type StageRule, type StageTable } from './stages.ts'

/** Where the time of a thread went; shares of the time in which it did not wait for events. */
export interface Attribution {
  /** By stage; together 1. */
  readonly stages: Readonly<Record<string, number>>
  /** Functions by their own time, the longest first. */
  readonly functions: readonly FunctionShare[]
}

export interface FunctionShare {
  readonly functionName: string
  readonly file: string
  readonly stage: string
  readonly share: number
}

const IDLE = '(idle)'
const GARBAGE = '(garbage collector)'

/**
 * Divides the self-times of a profile among the stages.
 *
 * The profiler calls a thread idle whenever no JavaScript is on its stack in the poll phase: also while libuv reads sockets and
 * while the parser looks at a request. What CPU time the thread had beyond what the samples show is the loop's own work. (What
 * libuv says of its idle time is of no use here: the signals of the profiler interrupt its waits.)
 *
 * @throws Error if the thread did nothing
 */
export function attribute(
  { profile, cpuUs }: TakenProfile,
  table: StageTable,
  fileOf: (frame: CallFrame) => string,
): Attribution {
  const selfUs = selfTimes(profile)
  const stageOf = stageFinder(profile.nodes, table, fileOf)
  const stageUs = new Map(table.stages.map((stage) => [stage, 0]))
  const add = (stage: string, us: number): void => void stageUs.set(stage, (stageUs.get(stage) ?? 0) + us)
  const functions = new Map<string, FunctionShare & { us: number }>()
  let shownUs = 0
  for (const node of profile.nodes) {
    const us = selfUs.get(node.id) ?? 0
    const { functionName } = node.callFrame
    if (functionName === IDLE) continue
    shownUs += us
    const stage = stageOf(node)
    if (stage === undefined) continue
    add(stage, us)
    const file = fileOf(node.callFrame)
    const key = `${stage} ${functionName} ${file}`
    functions.set(key, { functionName, file, stage, share: 0, us: (functions.get(key)?.us ?? 0) + us })
  }
  add(table.loop, Math.max(0, cpuUs - shownUs))
  const totalUs = [...stageUs.values()].reduce((sum, us) => sum + us, 0)
  if (!(totalUs > 0)) throw new Error('The profile shows no work.')
  return {
    stages: Object.fromEntries([...stageUs].map(([stage, us]) => [stage, us / totalUs])),
    functions: [...functions.values()]
      .toSorted((a, b) => b.us - a.us)
      .map(({ us, ...named }) => ({ ...named, share: us / totalUs })),
  }
}

/** Longest time that a sample stands for: one that comes later was held up, for somebody else had the core. */
const MAX_SAMPLE_US = 1000

/** Time on top of the stack, in µs, by node. */
function selfTimes({ samples, timeDeltas }: CpuProfile): Map<number, number> {
  const selfUs = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    selfUs.set(id, (selfUs.get(id) ?? 0) + Math.min(timeDeltas[index] ?? 0, MAX_SAMPLE_US))
  }
  return selfUs
}

/**
 * Finds the stage of a node: that of the nearest frame of ours, itself included; else of the nearest foreign one that has any.
 * The profiler has none.
 */
function stageFinder(
  nodes: readonly ProfileNode[],
  { own, foreign, garbage, rest }: StageTable,
  fileOf: (frame: CallFrame) => string,
): (node: ProfileNode) => string | undefined {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)))
  return (node) => {
    if (node.callFrame.functionName === GARBAGE) return garbage
    let nearestForeign: string | undefined
    for (let at: ProfileNode | undefined = node; at !== undefined; at = parents.get(at.id)) {
      const file = fileOf(at.callFrame)
      if (PROFILER.test(file)) return undefined
      const stage = stageBy(own, file, at.callFrame.functionName)
      if (stage !== undefined) return stage
      nearestForeign ??= stageBy(foreign, file, at.callFrame.functionName)
    }
    return nearestForeign ?? rest
  }
}

function stageBy(rules: readonly StageRule[], file: string, functionName: string): string | undefined {
  return rules.find((rule) => rule.file.test(file) && (rule.functions?.test(functionName) ?? true))?.stage
}
