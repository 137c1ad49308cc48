import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec'
import type { Pattern, VariableDeclaration } from 'acorn'
import type { ModuleGraph } from './build-graph.ts'
import { labelPath, labelSource } from './label-path.ts'
import { lineIndex, type Place } from './line-index.ts'
import { FORCED_COMMONJS_SUFFIX } from './module-files.ts'
import { moduleProperty, type ParsedScript, type TopLevel } from './parse-script.ts'
import { MODULES } from './web-assembly-files.ts'

interface RawSourceMap {
  readonly sources: readonly string[]
  readonly sourcesContent: ReadonlyArray<string | null>
  readonly mappings: string
  readonly names: readonly string[]
}

type PlaceAt = (offset: number) => Place

/** The parameter of the function, as `builtins/support.ts` names it: what modules of Node.js need of the runtime. */
const SUPPORT = 'carpoolSupport_'

/** Compiles the bundle's WebAssembly, before anything else runs. */
function compiling({ webAssembly }: ModuleGraph): MappedLine[] {
  if (webAssembly.size === 0) return []
  return [plainLine(`const ${MODULES} = ${SUPPORT}.webAssembly(${JSON.stringify(Object.fromEntries(webAssembly))});`)]
}

/**
 * Makes the bundler's output one function that runs the modules and returns the exports. ES modules get strict mode and CommonJS
 * modules none, as Node runs them: if there are both, the CommonJS modules, which are functions that run when required, move in
 * front of a strict function with all the rest in it. The bundler itself can only make all strict, or all sloppy.
 */
export function assembleScript(graph: ModuleGraph, script: ParsedScript): { readonly code: string; readonly sourceMap: string } {
  const map = JSON.parse(graph.sourceMap) as RawSourceMap
  const lines = toMappedLines(graph.code, map.mappings)
  const placeAt = lineIndex(graph.code)
  const { helpers, commonJs, rest, lifted, liftedNames } = splitByMode(script)
  const strict = [...graph.modules.values()].includes('esm')
  const mixed = strict && commonJs.length > 0
  if (mixed) for (const statement of lifted) reassign(lines, statement, placeAt)
  dropDirectives(lines, graph, script, placeAt)
  relabel(lines, graph, script, placeAt)

  const linesOf = linesByStatement(lines, script.statements, placeAt)
  const take = (statements: readonly TopLevel[]): MappedLine[] => statements.flatMap((statement) => linesOf.get(statement) ?? [])
  const opening = (parameter: string): string => `(${graph.format === 'esm' ? 'async ' : ''}function (${parameter}) {`
  const directive = strict ? [plainLine('"use strict";')] : []
  const all = mixed
    ? [
        plainLine(`(function (${SUPPORT}) {`),
        ...compiling(graph),
        ...take(helpers),
        ...(liftedNames.length > 0 ? [plainLine(`var ${liftedNames.join(', ')};`)] : []),
        ...take(commonJs),
        plainLine(`return ${opening('')}`),
        ...directive,
        ...take(rest),
        plainLine('})();'),
        plainLine('})'),
      ]
    : [plainLine(opening(SUPPORT)), ...directive, ...compiling(graph), ...take(script.statements), plainLine('})')]
  const { code, mappings } = joinMappedLines(all)
  return { code, sourceMap: JSON.stringify({ version: 3, ...labelled(map, graph.folder), mappings, names: map.names }) }
}

/** Every statement with its lines and those of comments before it; exports as a return. */
function linesByStatement(
  lines: readonly MappedLine[],
  statements: readonly TopLevel[],
  placeAt: PlaceAt,
): Map<TopLevel, MappedLine[]> {
  const result = new Map<TopLevel, MappedLine[]>()
  let last = placeAt(statements[0]?.start ?? 0).line - 1
  // Comments before the first statement, up to the wrapper's opening line.
  while (last >= 0 && /^\s*(\/\/.*)?$/.test(lines[last]!.text)) last -= 1
  for (const statement of statements) {
    const end = placeAt(statement.end).line
    result.set(statement, returnExports(statement, lines, placeAt) ?? lines.slice(last + 1, end + 1))
    last = end
  }
  return result
}

/** `export { a as b }` as `return { "b": a }`. */
function returnExports(statement: TopLevel, lines: readonly MappedLine[], placeAt: PlaceAt): MappedLine[] | undefined {
  // Of a CommonJS entry: `export default require_index();`
  if (statement.type === 'ExportDefaultDeclaration') {
    const { line, column } = placeAt(statement.start)
    return [spliceLine(lines[line]!, column, column + 'export default'.length, 'return')]
  }
  if (statement.type === 'ExportNamedDeclaration') {
    const entries = statement.specifiers.map(({ local, exported }) => {
      const name = exported.type === 'Literal' ? String(exported.value) : exported.name
      return `${JSON.stringify(name)}: ${local.type === 'Literal' ? JSON.stringify(local.value) : local.name}`
    })
    return [plainLine(`return { ${entries.join(', ')} };`)]
  }
  return undefined
}

/**
 * Takes out each 'use strict' that the bundler puts into CommonJS because tsconfig.json says `strict`, which Node does not
 * read.
 */
function dropDirectives(lines: MappedLine[], { sloppy }: ModuleGraph, { statements }: ParsedScript, placeAt: PlaceAt): void {
  for (const statement of statements) {
    const { key, value } = moduleProperty(statement) ?? {}
    if (key?.type !== 'Literal' || !sloppy.has(String(key.value)) || value?.type !== 'FunctionExpression') continue
    const [first] = value.body.body
    if (first !== undefined && 'directive' in first && first.directive === 'use strict')
      lines[placeAt(first.start).line] = plainLine('')
  }
}

/** Replaces the paths that the bundler writes into comments and keys. */
function relabel(
  lines: MappedLine[],
  { modules, folder }: ModuleGraph,
  { comments, statements }: ParsedScript,
  placeAt: PlaceAt,
): void {
  for (const { type, value, start } of comments) {
    const path = value.trim()
    if (type !== 'Line' || !modules.has(path)) continue
    const { line, column } = placeAt(start)
    const { text } = lines[line]!
    lines[line] = spliceLine(lines[line]!, column, text.length, `// ${labelPath(path, folder)}`)
  }
  for (const statement of statements) {
    const key = moduleProperty(statement)?.key
    if (key?.type !== 'Literal') continue
    const { value, start, end } = key
    if (typeof value !== 'string' || !modules.has(value)) continue
    const { line, column } = placeAt(start)
    lines[line] = spliceLine(lines[line]!, column, placeAt(end).column, JSON.stringify(labelPath(value, folder)))
  }
}

function labelled(
  { sources, sourcesContent }: RawSourceMap,
  folder: string,
): { sources: string[]; sourcesContent: Array<string | null> } {
  return {
    sources: sources.map((source) => labelSource(source, folder)),
    sourcesContent: sourcesContent.map((text) => {
      return text?.endsWith(FORCED_COMMONJS_SUFFIX) ? text.slice(0, -FORCED_COMMONJS_SUFFIX.length) : text
    }),
  }
}

export interface ModeSplit {
  /** The bundler's own functions. */
  readonly helpers: readonly TopLevel[]
  /** `var require_x = __commonJS(...)` */
  readonly commonJs: readonly TopLevel[]
  /** The ES modules, and the return of the exports. */
  readonly rest: readonly TopLevel[]
  /** Those of `rest` that declare variables which a CommonJS module uses: the namespaces of ES modules that it requires. */
  readonly lifted: readonly VariableDeclaration[]
  readonly liftedNames: readonly string[]
}

/** Tells CommonJS modules from ES modules in the bundler's output. */
export function splitByMode({ statements, comments, names }: ParsedScript): ModeSplit {
  // The bundler writes a module's path before it, and its helpers before all modules.
  const isTopLevel = (position: number): boolean => !statements.some((it) => it.start <= position && position < it.end)
  const firstModule = comments.find(({ type, start }) => type === 'Line' && isTopLevel(start))?.start ?? 0
  const helpers = statements.filter(({ start }) => start < firstModule)
  const commonJs = statements.filter((statement) => isCommonJsModule(statement, helpers))
  const others = new Set([...helpers, ...commonJs])
  const rest = statements.filter((statement) => !others.has(statement))

  const used = namesIn(commonJs, names)
  const lifted = rest
    .filter((it): it is VariableDeclaration => it.type === 'VariableDeclaration' && it.kind === 'var')
    .filter((it) => {
      return declaredNames(it).some((name) => used.has(name))
    })
  return { helpers, commonJs, rest, lifted, liftedNames: lifted.flatMap(declaredNames) }
}

/** Makes `var a = 1;` an assignment, `(a = 1);`, at the same column: its variable is declared further out. */
function reassign(lines: MappedLine[], declaration: VariableDeclaration, placeAt: PlaceAt): void {
  const [start, end] = [placeAt(declaration.start), placeAt(declaration.end)]
  lines[end.line] = spliceLine(lines[end.line]!, end.column - 1, end.column - 1, ')')
  lines[start.line] = spliceLine(lines[start.line]!, start.column, start.column + 'var '.length, ';  (')
}

function isCommonJsModule(statement: TopLevel, helpers: readonly TopLevel[]): boolean {
  const init = statement.type === 'VariableDeclaration' ? statement.declarations[0]?.init : undefined
  if (init?.type !== 'CallExpression' || init.callee.type !== 'Identifier') return false
  const { name } = init.callee
  return (
    /^__commonJS\d*$/.test(name) && helpers.some((it) => it.type === 'VariableDeclaration' && declaredNames(it).includes(name))
  )
}

/** Property names are among them: a variable too many is lifted at times, which changes nothing. */
function namesIn(statements: readonly TopLevel[], names: ParsedScript['names']): Set<string> {
  const found = new Set<string>()
  let index = 0
  for (const { start, end } of statements) {
    while (index < names.length && names[index]!.start < start) index += 1
    for (; index < names.length && names[index]!.start < end; index += 1) found.add(names[index]!.name)
  }
  return found
}

function declaredNames(statement: VariableDeclaration): string[] {
  return statement.declarations.flatMap(({ id }) => namesOfPattern(id))
}

function namesOfPattern(pattern: Pattern): string[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((it) => namesOfPattern(it.type === 'RestElement' ? it.argument : it.value))
    case 'ArrayPattern':
      return pattern.elements.flatMap((it) => (it === null ? [] : namesOfPattern(it)))
    case 'AssignmentPattern':
      return namesOfPattern(pattern.left)
    case 'RestElement':
      return namesOfPattern(pattern.argument)
    default:
      return []
  }
}

/** A line of code with its part of the source map, so that lines can be moved and edited. */
export interface MappedLine {
  readonly text: string
  readonly segments: readonly SourceMapSegment[]
}

export function toMappedLines(code: string, mappings: string): MappedLine[] {
  const segments = decode(mappings)
  return code.split('\n').map((text, index) => ({ text, segments: segments[index] ?? [] }))
}

/** A line that comes from no source. */
export function plainLine(text: string): MappedLine {
  return { text, segments: [] }
}

/** Replaces `from` (inclusive) to `to` (exclusive), moving what is mapped behind it. */
export function spliceLine({ text, segments }: MappedLine, from: number, to: number, inserted: string): MappedLine {
  const shift = inserted.length - (to - from)
  const moved = segments.map((segment) => (segment[0] < to ? segment : (segment.with(0, segment[0] + shift) as SourceMapSegment)))
  return { text: text.slice(0, from) + inserted + text.slice(to), segments: moved }
}

export function joinMappedLines(lines: readonly MappedLine[]): { readonly code: string; readonly mappings: string } {
  return { code: lines.map((line) => line.text).join('\n'), mappings: encode(lines.map((line) => [...line.segments])) }
}
