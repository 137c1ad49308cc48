import type { ModuleGraph } from './build-graph.ts'
import { FORCED_COMMONJS_SUFFIX } from './force-commonjs.ts'
import { labelPath, labelSource } from './label-path.ts'
import { joinMappedLines, plainLine, spliceLine, toMappedLines, type MappedLine } from './mapped-line.ts'
import { moduleProperty, type ParsedScript, type TopLevel } from './parse-script.ts'
import { reassign, splitByMode } from './split-by-mode.ts'

interface RawSourceMap {
  readonly sources: readonly string[]
  readonly sourcesContent: ReadonlyArray<string | null>
  readonly mappings: string
  readonly names: readonly string[]
}

/**
 * Makes the bundler's output one function that runs the modules and returns the exports. ES modules get strict mode and CommonJS
 * modules none, as Node runs them: if there are both, the CommonJS modules, which are functions that run when required, move in
 * front of a strict function with all the rest in it. The bundler itself can only make all strict, or all sloppy.
 */
export function assembleScript(graph: ModuleGraph, script: ParsedScript): { readonly code: string; readonly sourceMap: string } {
  const map = JSON.parse(graph.sourceMap) as RawSourceMap
  const lines = toMappedLines(graph.code, map.mappings)
  const { helpers, commonJs, rest, lifted, liftedNames } = splitByMode(script)
  const strict = [...graph.modules.values()].includes('esm')
  const mixed = strict && commonJs.length > 0
  if (mixed) for (const statement of lifted) reassign(lines, statement)
  dropDirectives(lines, graph, script)
  relabel(lines, graph, script)

  const linesOf = linesByStatement(lines, script.statements)
  const take = (statements: readonly TopLevel[]): MappedLine[] => statements.flatMap((statement) => linesOf.get(statement) ?? [])
  const opening = graph.format === 'esm' ? '(async function () {' : '(function () {'
  const directive = strict ? [plainLine('"use strict";')] : []
  const all = mixed
    ? [
        plainLine('(function () {'),
        ...take(helpers),
        ...(liftedNames.length > 0 ? [plainLine(`var ${liftedNames.join(', ')};`)] : []),
        ...take(commonJs),
        plainLine(`return ${opening}`),
        ...directive,
        ...take(rest),
        plainLine('})();'),
        plainLine('})'),
      ]
    : [plainLine(opening), ...directive, ...take(script.statements), plainLine('})')]
  const { code, mappings } = joinMappedLines(all)
  return { code, sourceMap: JSON.stringify({ version: 3, ...labelled(map, graph.folder), mappings, names: map.names }) }
}

/** Every statement with its lines and those of comments before it; exports as a return. */
function linesByStatement(lines: readonly MappedLine[], statements: readonly TopLevel[]): Map<TopLevel, MappedLine[]> {
  const result = new Map<TopLevel, MappedLine[]>()
  let last = (statements[0]?.loc?.start.line ?? 1) - 2
  // Comments before the first statement, up to the wrapper's opening line.
  while (last >= 0 && /^\s*(\/\/.*)?$/.test(lines[last]!.text)) last -= 1
  for (const statement of statements) {
    const end = statement.loc!.end.line - 1
    result.set(statement, returnExports(statement, lines) ?? lines.slice(last + 1, end + 1))
    last = end
  }
  return result
}

/** `export { a as b }` as `return { "b": a }`. */
function returnExports(statement: TopLevel, lines: readonly MappedLine[]): MappedLine[] | undefined {
  // Of a CommonJS entry: `export default require_index();`
  if (statement.type === 'ExportDefaultDeclaration') {
    const { line, column } = statement.loc!.start
    return [spliceLine(lines[line - 1]!, column, column + 'export default'.length, 'return')]
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

/** Takes out each 'use strict' that the bundler puts into CommonJS because tsconfig.json says `strict`, which Node does not read. */
function dropDirectives(lines: MappedLine[], { sloppy }: ModuleGraph, { statements }: ParsedScript): void {
  for (const statement of statements) {
    const { key, value } = moduleProperty(statement) ?? {}
    if (key?.type !== 'Literal' || !sloppy.has(String(key.value)) || value?.type !== 'FunctionExpression') continue
    const [first] = value.body.body
    if (first !== undefined && 'directive' in first && first.directive === 'use strict')
      lines[first.loc!.start.line - 1] = plainLine('')
  }
}

/** Replaces the paths that the bundler writes into comments and keys. */
function relabel(lines: MappedLine[], { modules, folder }: ModuleGraph, { comments, statements }: ParsedScript): void {
  for (const { type, value, loc } of comments) {
    const path = value.trim()
    if (type !== 'Line' || !modules.has(path)) continue
    const { line, column } = loc!.start
    const { text } = lines[line - 1]!
    lines[line - 1] = spliceLine(lines[line - 1]!, column, text.length, `// ${labelPath(path, folder)}`)
  }
  for (const statement of statements) {
    const key = moduleProperty(statement)?.key
    if (key?.type !== 'Literal') continue
    const { value, loc } = key
    if (typeof value !== 'string' || !modules.has(value)) continue
    const { line, column } = loc!.start
    lines[line - 1] = spliceLine(lines[line - 1]!, column, loc!.end.column, JSON.stringify(labelPath(value, folder)))
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
