import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { transact } from '@carpool/storage'
import { HourlySums } from './hourly-sums.ts'
import { JournalFile } from './journal-file.ts'
import {
  BACKGROUND,
  BLOCK_HEAD_BYTES,
  JOURNAL_VERSION,
  nameAt,
  OlderRecord,
  recordBytesOf,
  SLOT,
  TABLE,
  type JournalBytes,
  type JournalPosition,
  type Name,
  type RecordEnums,
  type RevisionName,
} from './journal-format.ts'

/** Rows of one transaction, and up to a block more: some ten ms. */
const TRANSACTION_ROWS = 5000

/** Figures of a record, which follow each other as the columns of `invocations` do. */
const FIGURES = SLOT.id - SLOT.startedAtMs

export interface ImporterOptions {
  readonly folder: string
  /** What is not behind this is in a database already, also if in none that is here. */
  readonly afterSequence: number
  readonly onProblem: (message: string) => void
}

interface Loss {
  readonly count: number
  readonly first: number
  readonly last: number
}

/** What an enum code stands for. */
interface KnownEnums {
  readonly enums: RecordEnums
  readonly add: StatementSync
}

/** Brings the journal into the database: each record once, by its sequence, and its hourly totals in the same transaction. */
export class Importer {
  readonly #database: DatabaseSync
  readonly #options: ImporterOptions
  readonly #findRevision: StatementSync
  readonly #findLatestRevision: StatementSync
  readonly #addRevision: StatementSync
  readonly #addBackground: StatementSync
  readonly #setThrough: StatementSync
  /** One statement for each combination of enums, with them in it: what is not bound costs nothing. */
  readonly #addInvocation = new Map<string, StatementSync>()
  readonly #sums: HourlySums
  /** The binding copies it, so that one array serves all rows. */
  readonly #id = new Uint8Array(16)
  readonly #idQuads = new Uint32Array(this.#id.buffer)
  readonly #older = new OlderRecord()
  readonly #figures = Array<number>(FIGURES).fill(0)
  #file: JournalFile | undefined
  /** What the keys in the file stand for. */
  readonly #revisions = new Map<number, number>()
  readonly #enums = new Map<number, KnownEnums>()
  /** The last record that was read, and the last that is committed. */
  #sequence: number
  #through: number
  /** Bytes of the file, and records, that cannot be read and were not reported yet. */
  #damage: Loss | undefined
  #missing: Loss | undefined
  /** Of the file that is open. */
  #isDamaged = false

  constructor(database: DatabaseSync, options: ImporterOptions) {
    this.#database = database
    this.#options = options
    this.#findRevision = database.prepare(
      'SELECT key FROM revisions WHERE function = ? AND revision = ? AND owner = ? AND memory_mb = ?',
    )
    this.#findLatestRevision = database.prepare(
      'SELECT max(key) AS key FROM revisions WHERE function = ? AND revision = ? AND owner = ?',
    )
    this.#addRevision = database.prepare('INSERT INTO revisions (function, revision, owner, memory_mb) VALUES (?, ?, ?, ?)')
    this.#addBackground = database.prepare('INSERT INTO background VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
    this.#setThrough = database.prepare('UPDATE totals_through SET sequence = ?')
    this.#sums = new HourlySums(database)
    const stored = database.prepare('SELECT sequence FROM totals_through').get()?.['sequence']
    this.#sequence = Math.max(Number(stored), options.afterSequence)
    this.#through = this.#sequence
  }

  /** The last record that is in the database. */
  get through(): number {
    return this.#through
  }

  /**
   * Brings in everything up to there, and deletes the files that are complete.
   * @param upTo default: everything, and no file is still written
   * @throws CarpoolError `data-unusable` if another version wrote the journal; else errors of SQLite or the system. What is
   * committed stays, and the rest can be tried again.
   */
  bringIn(upTo?: JournalPosition): void {
    try {
      for (;;) {
        this.#file ??= this.#openOldest()
        if (this.#file === undefined || (upTo !== undefined && this.#file.number > upTo.file)) return
        const isComplete = upTo === undefined || this.#file.number < upTo.file
        this.#importFile(this.#file, isComplete ? undefined : upTo?.end)
        if (!isComplete) return
        this.#file.drop(this.#isDamaged)
        this.#file = undefined
      }
    } catch (cause) {
      // What was rolled back is read again, from the beginning of its file: the names in it may have been rolled back, too.
      this.#file?.close()
      this.#file = undefined
      this.#sequence = this.#through
      this.#sums.clear()
      this.#damage = undefined
      this.#missing = undefined
      throw cause
    }
  }

  #openOldest(): JournalFile | undefined {
    this.#revisions.clear()
    this.#enums.clear()
    this.#isDamaged = false
    return JournalFile.openOldest(this.#options.folder)
  }

  #importFile(file: JournalFile, upTo: number | undefined): void {
    const { view, origin, stretches } = file.read(upTo)
    let next = stretches.next()
    while (next.done !== true) {
      transact(this.#database, () => {
        const limit = this.#sequence + TRANSACTION_ROWS
        for (; next.done !== true && this.#sequence < limit; next = stretches.next()) {
          const { from, to, isBlock } = next.value
          if (isBlock) this.#importBlock(file.version, view, origin, from + BLOCK_HEAD_BYTES, to)
          else this.#damage = added(this.#damage, origin + from, origin + to - 1)
        }
        this.#sums.store()
        this.#setThrough.run(this.#sequence)
      })
      this.#through = this.#sequence
      this.#report(file)
    }
  }

  /** Names what was lost. Called after the commit, for what is rolled back is read again. */
  #report({ name }: JournalFile): void {
    const { onProblem } = this.#options
    if (this.#damage !== undefined) {
      const { count, first } = this.#damage
      onProblem(
        `${name} in the data folder is damaged: ${count} bytes of it cannot be read, the first of them byte ${first}. ` +
          `What is whole is brought into the ledger, and the file is kept, as ${name}.damaged.`,
      )
      this.#isDamaged = true
    }
    if (this.#missing !== undefined) {
      const { count, first, last } = this.#missing
      onProblem(`Missing in the journal of the ledger: ${count} records, of those with the sequences ${first} to ${last}.`)
    }
    this.#damage = undefined
    this.#missing = undefined
  }

  #importBlock(version: number, view: JournalBytes, origin: number, from: number, end: number): void {
    const recordBytes = recordBytesOf(version)
    for (let at = from; at < end; ) {
      const name = nameAt(view, at, end)
      const itemEnd = Math.min(at + (name?.itemBytes ?? recordBytes), end)
      const isUnderstood =
        name === undefined ? itemEnd - at === recordBytes && this.#importItem(version, view, at) : this.#learn(name)
      if (!isUnderstood) this.#damage = added(this.#damage, origin + at, origin + itemEnd - 1)
      at = itemEnd
    }
  }

  #learn({ table, key, text }: Name): boolean {
    const value = parsed(text)
    if (table === TABLE.revisions && Array.isArray(value))
      this.#revisions.set(key, this.#revisionOf(value as unknown as RevisionName))
    else if (table === TABLE.enums && Array.isArray(value))
      this.#enums.set(key, this.#knownEnums(value as unknown as RecordEnums))
    else return false
    return true
  }

  #revisionOf([functionName, revision, owner, memoryMb]: RevisionName): number {
    const names = [functionName, revision, owner] as const
    const found = memoryMb === null ? this.#findLatestRevision.get(...names) : this.#findRevision.get(...names, memoryMb)
    if (typeof found?.['key'] === 'number') return found['key']
    return Number(this.#addRevision.run(...names, memoryMb ?? 0).lastInsertRowid)
  }

  #knownEnums(enums: RecordEnums): KnownEnums {
    const literals = enums.map((word) => (word === null ? 'NULL' : `'${word.replaceAll("'", "''")}'`)).join(', ')
    const add =
      this.#addInvocation.get(literals) ??
      this.#database.prepare(`INSERT INTO invocations VALUES (?, ?, ?, ?, ${literals}${', ?'.repeat(FIGURES - 1)})`)
    this.#addInvocation.set(literals, add)
    return { enums, add }
  }

  #importItem(version: number, view: JournalBytes, at: number): boolean {
    return version === JOURNAL_VERSION ? this.#importRecord(view, at) : this.#importRecord(this.#older.take(view, at), 0)
  }

  /** Gives false if it is no record, or one whose names are lost. */
  #importRecord({ slots, u32s }: JournalBytes, at: number): boolean {
    const base = at / 8
    const figure = (place: number): number => slots[base + place] ?? 0
    const sequence = figure(SLOT.sequence)
    if (sequence <= this.#sequence) return true
    const revision = this.#revisions.get(figure(SLOT.revisionKey))
    const isBackground = figure(SLOT.enumCode) === BACKGROUND
    const known = isBackground ? undefined : this.#enums.get(figure(SLOT.enumCode))
    // Also if the sequence is no number.
    if (!(sequence > this.#sequence) || revision === undefined || (known === undefined && !isBackground)) return false
    if (this.#sequence > 0 && sequence > this.#sequence + 1) {
      this.#missing = added(this.#missing, this.#sequence + 1, sequence - 1)
    }
    this.#sequence = sequence
    this.#sums.add(slots, base, revision, known?.enums)
    if (known === undefined) {
      const { startedAtMs, host, cpuUs, egressBytesIn, egressBytesOut, sockets, socketUs } = SLOT
      const places = [startedAtMs, host, cpuUs, egressBytesIn, egressBytesOut, sockets, socketUs]
      this.#addBackground.run(sequence, revision, ...places.map(figure))
      return true
    }
    const idBase = (base + SLOT.id) * 2
    for (let quad = 0; quad < 4; quad += 1) this.#idQuads[quad] = u32s[idBase + quad] ?? 0
    for (let place = 0; place < FIGURES; place += 1) this.#figures[place] = figure(SLOT.startedAtMs + place)
    known.add.run(sequence, this.#id, revision, ...this.#figures)
    return true
  }
}

function added(loss: Loss | undefined, first: number, last: number): Loss {
  return { count: (loss?.count ?? 0) + last - first + 1, first: loss?.first ?? first, last }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
