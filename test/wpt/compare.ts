/** Runs tests here and in Node.js, and compares: what Node.js does not pass is not asked of a guest. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Area, AREAS, type TestFile, testsOf } from './areas.ts'
import { runInGuest } from './guest-runner.ts'
import { runInNode } from './node-runner.ts'
import { Roots } from './scripts.ts'

export const EXPECTATIONS_FILE = join(import.meta.dirname, 'expectations.json')

/**
 * By the name of a test: subtests that Node.js passes and a guest does not, and is not expected to; {@link ALL} for all of
 * them.
 */
export type Expectations = Readonly<Record<string, readonly string[]>>

export const ALL = '*'

export interface Outcome {
  readonly area: string
  readonly path: string
  /** How many subtests there are, as far as either knows. */
  readonly subtests: number
  readonly nodePasses: number
  /** What Node.js passes and the guest does not. */
  readonly missing: readonly string[]
  readonly problem: string | undefined
}

/** Subtests of what is not here on purpose: memory that is shared is a clock. */
const IS_LEFT_OUT = /SharedArrayBuffer|shared Uint8Array/

/** How long one test may take. Those that Node.js passes take far less. */
const TIMEOUT_MS = 10_000

export interface Selection {
  /** Folders that hold the tests, the preferred one first. */
  readonly roots: readonly string[]
  /** Runs those tests only whose area or path has one of these in it; all if there are none. */
  readonly names?: readonly string[]
  /** Runs every so many-th test of an area only. Default: 1. */
  readonly every?: number
  /** How many run at the same time. Default: 2. */
  readonly jobs?: number
}

/** The folders that the environment names. */
export function rootsOf(text: string | undefined): string[] {
  return (text ?? '').split(':').filter((root) => root !== '')
}

export function readExpectations(): Expectations {
  return JSON.parse(readFileSync(EXPECTATIONS_FILE, 'utf8')) as Expectations
}

interface Task {
  readonly area: Area
  readonly test: TestFile
}

function tasksOf({ roots, names = [], every = 1 }: Selection): Task[] {
  return AREAS.flatMap((area) =>
    testsOf(area, roots)
      .filter(({ path }) => names.length === 0 || names.some((name) => area.name.includes(name) || path.includes(name)))
      .filter((_, index) => index % every === 0)
      .map((test) => ({ area, test })),
  )
}

/** Runs the tests of a selection. `onDone` hears of each. */
export async function compare(selection: Selection, onDone: (outcome: Outcome) => void = () => {}): Promise<Outcome[]> {
  const roots = new Roots(selection.roots)
  const tasks = tasksOf(selection)
  const outcomes: Outcome[] = []
  const work = async (): Promise<void> => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
      const outcome = await compareOne(task, roots)
      outcomes.push(outcome)
      onDone(outcome)
    }
  }
  await Promise.all(Array.from({ length: selection.jobs ?? 2 }, work))
  return outcomes.toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

async function compareOne({ area, test }: Task, roots: Roots): Promise<Outcome> {
  const scripts = roots.scriptsOf(test)
  const [guest, node] = [await runInGuest(scripts, roots, TIMEOUT_MS), await runInNode(scripts, roots, TIMEOUT_MS)]
  const passed = Object.keys(node.results).filter((name) => node.results[name] && !IS_LEFT_OUT.test(name))
  return {
    area: area.name,
    path: test.path,
    subtests: new Set([...Object.keys(node.results), ...Object.keys(guest.results)]).size,
    nodePasses: passed.length,
    missing: passed.filter((name) => guest.results[name] !== true),
    problem: guest.problem,
  }
}

export interface Row {
  readonly area: string
  readonly tests: number
  readonly subtests: number
  readonly nodePasses: number
  readonly passes: number
}

/** The table: a row for each area that was run, and one for all. */
export function rowsOf(outcomes: readonly Outcome[]): Row[] {
  const rows = AREAS.map(({ name }) =>
    rowOf(
      name,
      outcomes.filter(({ area }) => area === name),
    ),
  )
  return [...rows.filter(({ tests }) => tests > 0), rowOf('all', outcomes)]
}

function rowOf(area: string, outcomes: readonly Outcome[]): Row {
  const sum = (value: (outcome: Outcome) => number): number => outcomes.reduce((all, one) => all + value(one), 0)
  return {
    area,
    tests: outcomes.length,
    subtests: sum(({ subtests }) => subtests),
    nodePasses: sum(({ nodePasses }) => nodePasses),
    passes: sum(({ nodePasses, missing }) => nodePasses - missing.length),
  }
}

export function percentOf({ passes, nodePasses }: Row): number {
  return nodePasses === 0 ? 100 : Math.floor((passes / nodePasses) * 1000) / 10
}

/** What fails that was not expected to. */
export function regressionsOf(outcomes: readonly Outcome[], expectations: Expectations): string[] {
  return outcomes.flatMap(({ path, missing, problem }) => {
    const expected = new Set(expectations[path])
    if (expected.has(ALL)) return []
    return missing
      .filter((name) => !expected.has(name))
      .map((name) => `${path}: ${name}${problem === undefined ? '' : ` (${problem})`}`)
  })
}
