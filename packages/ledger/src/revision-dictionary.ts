import type { BackgroundUsage, InvocationRecord } from '@carpool/core'
import type { RevisionRow } from './batch-writer.ts'
import { clampFigure } from './slots.ts'

type RevisionOf = Pick<InvocationRecord, 'functionName' | 'revision' | 'owner' | 'memoryMb'>

/** The numbers under which rows know their function, revision, owner and memory limit. */
export class RevisionDictionary {
  readonly #onNew: (row: RevisionRow) => void
  readonly #rows = new Map<string, RevisionRow>()
  /** By revision id alone, which is nearly always enough. */
  readonly #latest = new Map<string, RevisionRow>()
  #nextKey = 1

  constructor(rows: readonly RevisionRow[], onNew: (row: RevisionRow) => void) {
    this.#onNew = onNew
    for (const row of rows) this.#keep(row)
  }

  /** Every row, in the order of the keys. */
  get rows(): RevisionRow[] {
    return [...this.#rows.values()]
  }

  keyOf(record: RevisionOf): number {
    const latest = this.#latest.get(record.revision)
    const isLatest =
      latest !== undefined &&
      latest.functionName === record.functionName &&
      latest.memoryMb === record.memoryMb &&
      latest.owner === record.owner
    return isLatest ? latest.key : this.#find(record).key
  }

  /** Background usage knows no memory limit: it goes to the revision as it ran last. */
  keyOfBackground(usage: BackgroundUsage): number {
    const { functionName, revision, owner } = usage
    const latest = this.#latest.get(revision)
    const isLatest = latest !== undefined && latest.functionName === functionName && latest.owner === owner
    return isLatest ? latest.key : this.#find({ functionName, revision, owner, memoryMb: 0 }).key
  }

  #find({ functionName, revision, owner, memoryMb }: RevisionOf): RevisionRow {
    const row = { key: this.#nextKey, functionName, revision, owner, memoryMb: clampFigure(memoryMb) }
    const known = this.#rows.get(identity(row))
    if (known !== undefined) {
      this.#latest.set(revision, known)
      return known
    }
    this.#keep(row)
    this.#onNew(row)
    return row
  }

  #keep(row: RevisionRow): void {
    this.#rows.set(identity(row), row)
    this.#latest.set(row.revision, row)
    this.#nextKey = Math.max(this.#nextKey, row.key + 1)
  }
}

function identity({ functionName, revision, owner, memoryMb }: RevisionOf): string {
  return JSON.stringify([functionName, revision, owner, memoryMb])
}
