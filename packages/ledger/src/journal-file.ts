import { closeSync, fstatSync, readdirSync, readSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import { openFileSync } from '@carpool/storage'
import {
  HEADER_BYTES,
  isKnownVersion,
  JOURNAL_VERSION,
  journalBytes,
  journalFileName,
  journalNumbers,
  stretchesOf,
  versionOf,
  type JournalBytes,
  type Stretch,
} from './journal-format.ts'

export interface JournalRange {
  readonly view: JournalBytes
  /** Where the range begins in the file. */
  readonly origin: number
  readonly stretches: Iterator<Stretch, undefined>
}

/** A file of the journal on its way into the database. */
export class JournalFile {
  readonly number: number
  readonly #path: string
  readonly #descriptor: number
  #position = 0
  #version = JOURNAL_VERSION

  private constructor(folder: string, number: number) {
    this.number = number
    this.#path = join(folder, journalFileName(number))
    this.#descriptor = openFileSync(this.#path)
  }

  /** The oldest file in a folder; undefined if there is none. */
  static openOldest(folder: string): JournalFile | undefined {
    const [oldest] = journalNumbers(readdirSync(folder))
    return oldest === undefined ? undefined : new JournalFile(folder, oldest)
  }

  get name(): string {
    return journalFileName(this.number)
  }

  /** Of what was read: what has no header is taken for one of ours. */
  get version(): number {
    return this.#version
  }

  /**
   * Reads what came behind what was read before.
   * @param upTo everything before it is written; default: the end of the file
   * @throws CarpoolError `data-unusable` if another version wrote it
   */
  read(upTo: number = fstatSync(this.#descriptor).size): JournalRange {
    const origin = this.#position
    const view = journalBytes(Math.max(0, upTo - origin))
    let end = 0
    while (origin + end < upTo) {
      const length = readSync(this.#descriptor, view.bytes, end, upTo - origin - end, origin + end)
      if (length === 0) break
      end += length
    }
    this.#position += end
    const version = origin === 0 ? versionOf(view, end) : undefined
    if (version !== undefined && !isKnownVersion(version)) {
      throw new CarpoolError(
        'data-unusable',
        `${this.name} in the data folder has version ${version} of the journal, and this Carpool reads none after version ${JOURNAL_VERSION}. ` +
          'Start the Carpool that wrote it, and end it in order: that brings its records into the ledger.',
      )
    }
    this.#version = version ?? this.#version
    // Without a header the blocks are looked for all the same.
    return { view, origin, stretches: stretchesOf(view, version === undefined ? 0 : HEADER_BYTES, end) }
  }

  /** Closes it and deletes it, when all of it is in the database. One that is damaged is kept under another name. */
  drop(isDamaged: boolean): void {
    if (isDamaged) renameSync(this.#path, `${this.#path}.damaged`)
    else rmSync(this.#path, { force: true })
    this.close()
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
