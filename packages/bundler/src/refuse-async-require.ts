import { decode } from '@jridgewell/sourcemap-codec'
import { CarpoolError } from '@carpool/core'
import type { ModuleGraph } from './build-graph.ts'
import { labelPath, labelSource } from './label-path.ts'
import { moduleProperty, type ParsedScript } from './parse-script.ts'

/**
 * Refuses `require()` of an ES module that awaits at its top level, as Node does. The bundler lets it pass, and the caller would get a
 * module that has not run.
 * @throws CarpoolError `bundle-failed`, naming file and line of the first such call
 */
export function refuseAsyncRequire(graph: ModuleGraph, { statements }: ParsedScript): void {
  if (graph.format !== 'esm') return
  for (const statement of statements) {
    if (statement.type !== 'VariableDeclaration') continue
    const [declarator] = statement.declarations
    const property = moduleProperty(statement)
    if (declarator?.id.type !== 'Identifier' || property?.value.type !== 'FunctionExpression' || !property.value.async) continue
    const call = graph.code.indexOf(`(${declarator.id.name}(), __toCommonJS`)
    if (call === -1) continue
    const required = property.key.type === 'Literal' ? labelPath(String(property.key.value), graph.folder) : 'a module'
    throw new CarpoolError(
      'bundle-failed',
      `${placeOf(graph, call)}: ${required} awaits at its top level, so it cannot be required; use import().`,
    )
  }
}

/** `file:line:column` of the source behind an offset in the code. */
function placeOf({ code, sourceMap, folder }: ModuleGraph, offset: number): string {
  const before = code.slice(0, offset).split('\n')
  const column = before.at(-1)!.length
  const { mappings, sources } = JSON.parse(sourceMap) as { readonly mappings: string; readonly sources: readonly string[] }
  const segment = decode(mappings)[before.length - 1]?.findLast((it) => it[0] <= column)
  if (segment === undefined || segment.length === 1) return 'the bundle'
  const [, source, line, sourceColumn] = segment
  return `${labelSource(sources[source]!, folder)}:${line + 1}:${sourceColumn + 1}`
}
