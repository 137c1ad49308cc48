import { SourceMap, type SourceMapPayload } from 'node:module'
import type { Revision } from '@carpool/core'

/** Source maps kept parsed: those of the functions that failed last. */
const MAX_CACHED = 50

/** Rewrites positions in the bundle of a revision to positions in the author's files. */
export class SourceMapper {
  readonly #read: (revision: Revision) => Promise<string>
  readonly #parsed = new Map<string, Promise<SourceMap | undefined>>()

  constructor(read: (revision: Revision) => Promise<string>) {
    this.#read = read
  }

  /** Maps a stack of a published revision. Without a readable source map the stack stays as it is. */
  async map(revision: Revision, stack: string): Promise<string> {
    const map = await this.#mapOf(revision)
    return map === undefined ? stack : mapStack(stack, revision.functionName, map)
  }

  #mapOf(revision: Revision): Promise<SourceMap | undefined> {
    const cached = this.#parsed.get(revision.id)
    if (cached !== undefined) return cached
    const parsed = this.#read(revision).then(parseSourceMap, () => undefined)
    this.#parsed.set(revision.id, parsed)
    const [oldest] = this.#parsed.keys()
    if (this.#parsed.size > MAX_CACHED && oldest !== undefined) this.#parsed.delete(oldest)
    return parsed
  }
}

/** Undefined if the text is no source map. */
export function parseSourceMap(text: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(text) as SourceMapPayload)
  } catch {
    return undefined
  }
}

/** Replaces `<function>.js:line:column` by the author's file and position, and drops the frames of the guest runtime. */
export function mapStack(stack: string, functionName: string, map: SourceMap): string {
  const position = new RegExp(`(?:<isolated-vm>|${functionName}\\.js):(\\d+):(\\d+)`, 'g')
  return stack
    .split('\n')
    .filter((line) => !line.includes('carpool:runtime'))
    .map((line) =>
      line.replace(position, (whole, lineNumber: string, column: string) => {
        const origin = map.findEntry(Number(lineNumber) - 1, Number(column) - 1)
        if (!('originalSource' in origin)) return whole
        return `${origin.originalSource}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
      }),
    )
    .join('\n')
}
