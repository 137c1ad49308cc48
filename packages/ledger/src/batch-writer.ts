import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { HourlySums } from './hourly-sums.ts'
import { wordsOf } from './record-codes.ts'
import { slotBase, type Ring } from './ring.ts'
import { BACKGROUND, SLOT } from './slots.ts'

/** What the number of a row stands for. */
export interface RevisionRow {
  readonly key: number
  readonly functionName: string
  readonly revision: string
  readonly owner: string
  readonly memoryMb: number
}

/** Puts batches of slots into the database, each in one transaction. */
export class BatchWriter {
  readonly #database: DatabaseSync
  readonly #ring: Ring
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #addRevision: StatementSync
  readonly #addBackground: StatementSync
  /** One statement for each combination of words, with the words in it: what is not bound costs nothing. */
  readonly #addInvocation: StatementSync[] = []
  readonly #newRevisions: RevisionRow[] = []
  readonly #sums: HourlySums
  readonly #id = new Uint8Array(16)
  readonly #idQuads = new Uint32Array(this.#id.buffer)

  constructor(database: DatabaseSync, ring: Ring) {
    this.#database = database
    this.#ring = ring
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#addRevision = database.prepare(
      'INSERT OR IGNORE INTO revisions (key, function, revision, owner, memory_mb) VALUES (?, ?, ?, ?, ?)',
    )
    this.#addBackground = database.prepare('INSERT INTO background VALUES (?, ?, ?, ?, ?, ?, ?)')
    this.#sums = new HourlySums(database)
  }

  /** Rows that are not in the hourly totals yet. */
  get rowsToSum(): number {
    return this.#sums.rows
  }

  /** It is written with the next batch. */
  addRevision(revision: RevisionRow): void {
    this.#newRevisions.push(revision)
  }

  /** Writes `count` slots from the count `first` on. Throws what SQLite says; then nothing of them is written. */
  write(first: number, count: number): void {
    this.#transact(() => {
      for (const { key, functionName, revision, owner, memoryMb } of this.#newRevisions) {
        this.#addRevision.run(key, functionName, revision, owner, memoryMb)
      }
      for (let index = 0; index < count; index += 1) this.#insert(slotBase(first + index))
    })
    this.#newRevisions.length = 0
    for (let index = 0; index < count; index += 1) this.#sums.add(this.#ring.slots, slotBase(first + index))
  }

  /** Brings the hourly totals nearer to the last row. Gives false when they are there. */
  storeSums(): boolean {
    return this.#sums.storeSome()
  }

  #insert(base: number): void {
    const { slots, quads } = this.#ring
    const at = (place: number): number => slots[base + place] ?? 0
    const words = at(SLOT.words)
    if (words === BACKGROUND) {
      this.#addBackground.run(
        at(SLOT.sequence),
        at(SLOT.revisionKey),
        at(SLOT.startedAtMs),
        at(SLOT.host),
        at(SLOT.cpuUs),
        at(SLOT.egressBytesIn),
        at(SLOT.egressBytesOut),
      )
      return
    }
    // The binding copies it, so that one array serves all rows.
    const idBase = (base + SLOT.id) * 2
    for (let quad = 0; quad < 4; quad += 1) this.#idQuads[quad] = quads[idBase + quad] ?? 0
    const statement = (this.#addInvocation[words] ??= this.#prepareInvocation(words))
    statement.run(
      at(SLOT.sequence),
      this.#id,
      at(SLOT.revisionKey),
      at(SLOT.startedAtMs),
      at(SLOT.status),
      at(SLOT.host),
      at(SLOT.attempts),
      at(SLOT.queueUs),
      at(SLOT.initUs),
      at(SLOT.wallUs),
      at(SLOT.cpuUs),
      at(SLOT.initCpuUs),
      at(SLOT.instanceUs),
      at(SLOT.memoryPeakKb),
      at(SLOT.bytesIn),
      at(SLOT.bytesOut),
      at(SLOT.egressBytesIn),
      at(SLOT.egressBytesOut),
    )
  }

  #prepareInvocation(wordsCode: number): StatementSync {
    const { outcome, start, trigger, error } = wordsOf(wordsCode)
    const words = `'${trigger}', '${start}', '${outcome}', ${error === null ? 'NULL' : `'${error}'`}`
    return this.#database.prepare(
      `INSERT INTO invocations VALUES (?, ?, ?, ?, ${words}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
  }

  #transact(work: () => void): void {
    this.#begin.run()
    try {
      work()
      this.#commit.run()
    } catch (cause) {
      // SQLite has already rolled back after some errors, such as a full disk.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw cause
    }
  }
}
