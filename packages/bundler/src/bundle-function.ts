import { CarpoolError } from '@carpool/core'
import { assembleScript } from './assemble-script.ts'
import { buildGraph, type ModuleGraph } from './build-graph.ts'
import { compactScript } from './compact-script.ts'
import { type Entry, findEntry, locate, suggestName } from './entry.ts'
import { type FunctionConfig, loadConfig } from './config.ts'
import { parseScript, refuseAsyncRequire } from './parse-script.ts'

const DEFAULT_LIMIT_BYTES = 10 * 1024 * 1024

export interface BundleOptions {
  /** `src/index.handler`: a file without its extension and one of its exports; or only an export. Wins over the config file. */
  readonly handler?: string
  /** Most bytes of code, not counting the source map. Default: 10 MiB. */
  readonly limitBytes?: number
}

export interface BundledFunction {
  /**
   * One script that evaluates to a function, whose parameter is the NodeSupport of the runtime or nothing. It runs the module
   * scope and returns the exports (`module.exports` of a CommonJS entry); or a promise of them if an ES module awaits at its
   * top level.
   */
  readonly code: string
  /** Source map v3 of `code` as JSON text. Sources are relative to the function's folder, packages as `node_modules/...`. */
  readonly sourceMap: string
  /** The export that was asked for; absent: the host's choice. */
  readonly handlerExport?: string
  /** `name` of the config file, else made from the folder's or the file's name. */
  readonly suggestedName: string
  /** What `carpool.config.*` says; empty if there is none, or if one file is bundled and not a folder. */
  readonly config: FunctionConfig
  /** Absolute paths of what was read and is not under `node_modules`: what to watch. */
  readonly inputs: readonly string[]
}

/**
 * Bundles a function on disk.
 * @param path a source file, or a folder with an entry in it
 * @throws CarpoolError `entry-not-found`, `invalid-config`, `invalid-name`, `bundle-failed`, `bundle-empty`,
 * `bundle-too-large`, `no-handler`
 */
export async function bundleFunction(path: string, options: BundleOptions = {}): Promise<BundledFunction> {
  const place = await locate(path)
  const { config, configFile } = await loadConfig(place)
  const entry = await findEntry(place, config, options.handler)
  const limitBytes = options.limitBytes ?? DEFAULT_LIMIT_BYTES
  const graph = await buildGraph(entry.folder, entry.file, limitBytes)
  // What is far too large is not parsed first, which takes a hundred times its size. Behind that only paths, white space and
  // comments go: of twice the limit that is seldom enough.
  checkSize(entry, graph.code, limitBytes, 2 * limitBytes)
  const script = parseScript(graph)
  refuseAsyncRequire(graph, script)
  checkHandler(entry, graph, script.entryExports)
  const { code, sourceMap } = await compactScript(assembleScript(graph, script))
  checkSize(entry, code, limitBytes)
  return {
    code,
    sourceMap,
    ...(entry.handlerExport !== undefined && { handlerExport: entry.handlerExport }),
    suggestedName: config.name ?? suggestName(place),
    config,
    inputs: [...new Set([...graph.watched, ...entry.read, ...(configFile === undefined ? [] : [configFile])])],
  }
}

/** Done here and not only by the server, which cannot name the file. What CommonJS exports is known only when it has run. */
function checkHandler(entry: Entry, graph: ModuleGraph, entryExports: readonly string[] | 'unknown'): void {
  if (entryExports === 'unknown') return
  const wanted = entry.handlerExport === undefined ? ['default', 'handler'] : [entry.handlerExport]
  // A module that exports `fetch` has the form of a default export itself.
  const accepted = entry.handlerExport === undefined ? [...wanted, 'fetch'] : wanted
  if (accepted.some((name) => entryExports.includes(name))) return
  if (graph.hasServers && entry.handlerExport === undefined) return
  const found = entryExports.length === 0 ? 'it exports nothing' : `it exports ${entryExports.join(', ')}`
  throw new CarpoolError(
    'no-handler',
    `${graph.entryLabel}:1: the function has no export ${wanted.map((name) => JSON.stringify(name)).join(' or ')}; ${found}.`,
  )
}

function checkSize(entry: Entry, code: string, limitBytes: number, mostBytes = limitBytes): void {
  const bytes = Buffer.byteLength(code)
  if (bytes <= mostBytes) return
  throw new CarpoolError('bundle-too-large', `The bundle of ${entry.shown} has ${bytes} bytes; the limit is ${limitBytes} bytes.`)
}
