import type { Readable, Writable } from 'node:stream'

/** What a command reads from and writes to; `process` is one. */
export interface Io {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working folder: absolute, without links. */
  cwd(): string
}
