import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire, findPackageJSON } from 'node:module'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { REPOSITORY } from './repository.ts'

/** What a result depends on besides the code that was measured; it is printed with every result. */
export interface Environment {
  /** ISO 8601, UTC. */
  readonly date: string
  readonly commit: string
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly system: string
  readonly node: string
  readonly v8: string
  readonly packages: Readonly<Record<string, string>>
  /** Over 1, 5 and 15 minutes, at the start. Well above zero means that the machine was not ours alone. */
  readonly loadAverage: readonly number[]
}

const PACKAGES = ['isolated-vm', 'fastify', 'workerd', '@google-cloud/functions-framework', 'autocannon']

/** Call it before anything is measured, or the load average is our own. */
export function readEnvironment(): Environment {
  return {
    date: new Date().toISOString(),
    commit: commitOf(REPOSITORY),
    cpu: cpus()[0]?.model.trim() || 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    system: `${process.platform} ${process.arch} ${release()}`,
    node: process.version,
    v8: process.versions.v8,
    packages: Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
    loadAverage: loadavg().map((load) => Math.round(load * 100) / 100),
  }
}

export function environmentLines(environment: Environment): string[] {
  const { date, commit, cpu, cores, memoryBytes, system, node, v8, packages, loadAverage } = environment
  return [
    `${cpu}, ${cores} cores, ${(memoryBytes / 2 ** 30).toFixed(1)} GiB, ${system}`,
    `Node ${node} (V8 ${v8}), ${Object.entries(packages)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}`,
    `${date}, commit ${commit}, load average at the start ${loadAverage.join(' ')}`,
  ]
}

function versionOf(name: string): string {
  // isolated-vm belongs to the host's workspace, the others to ours.
  for (const base of [import.meta.url, new URL('host/package.json', REPOSITORY).href]) {
    try {
      const file = findPackageJSON(createRequire(base).resolve(name), base)
      if (file !== undefined) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    } catch {
      // Not found from here.
    }
  }
  return 'not installed'
}

/** The commit of a checkout, and whether it has changes. @param folder anywhere in it */
export function commitOf(folder: string | URL): string {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    return (
      git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ' with changes')
    )
  } catch {
    return 'unknown'
  }
}
