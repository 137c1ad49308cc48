import { readFileSync, writeFileSync } from 'node:fs'
import type { Environment } from '../lib/environment.ts'
import { repositoryPath } from '../lib/repository.ts'

/** Where and when something was measured. */
export interface Provenance {
  readonly commit: string
  readonly machine: string
  readonly node: string
  /** Day, UTC. */
  readonly date: string
}

/** A claim as it was measured last. */
export interface StoredClaim extends Provenance {
  readonly text: string
  readonly figures: Readonly<Record<string, number>>
}

export type StoredClaims = Readonly<Record<string, StoredClaim>>

const FILE = 'bench/results/claims.json'

export function readStored(): StoredClaims {
  return JSON.parse(readFileSync(repositoryPath(FILE), 'utf8')) as StoredClaims
}

export function writeStored(claims: StoredClaims): void {
  const sorted = Object.fromEntries(Object.entries(claims).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(repositoryPath(FILE), `${JSON.stringify(sorted, null, 2)}\n`)
}

export function provenanceOf({ commit, cpu, cores, node, date }: Environment): Provenance {
  return { commit, machine: `${cpu.replaceAll(/\((?:R|TM)\)/g, '')}, ${cores} cores`, node, date: date.slice(0, 10) }
}

/** One line that says where and when the claims were measured: those that share it together. */
export function provenanceLine(claims: ReadonlyArray<readonly [name: string, stored: Provenance]>): string {
  const groups = [
    ...Map.groupBy(claims, ([, { commit, machine, node, date }]) =>
      [date, `commit ${commit}`, machine, `Node ${node.replace(/^v/, '')}`].join(', '),
    ),
  ]
  if (groups.length === 1) return groups[0]?.[0] ?? ''
  // Those that are alone are named; the many are the rest.
  const sorted = groups.toSorted(([, a], [, b]) => b.length - a.length)
  return sorted
    .map(([line, of], index) => (index === 0 ? line : `${of.map(([name]) => `\`${name}\``).join(', ')}: ${line}`))
    .join('; ')
}
