import { CarpoolError } from '@carpool/core'
import { decode } from '@jridgewell/sourcemap-codec'
import {
  type Comment,
  type ModuleDeclaration,
  type Options,
  Parser,
  type Program,
  type Property,
  type Statement,
  tokTypes,
} from 'acorn'
import type { ModuleGraph } from './build-graph.ts'
import { labelPath, labelSource } from './label-path.ts'

export type TopLevel = Statement | ModuleDeclaration

/** The bundler's output, read. */
export interface ParsedScript {
  /** Statements of the modules and of the bundler's helpers, in order, without what the bundler wraps them in. */
  readonly statements: readonly TopLevel[]
  readonly comments: readonly Comment[]
  /** Every identifier, property names too, in order. */
  readonly names: ReadonlyArray<{ readonly start: number; readonly name: string }>
  /** `unknown`: the entry is CommonJS, or passes on what a CommonJS module exports. */
  readonly entryExports: readonly string[] | 'unknown'
}

/** What a parser of acorn has at a token; it goes on to the next one with `next`. */
interface AtToken {
  readonly type: unknown
  readonly start: number
  readonly value: unknown
}

const { next } = Parser.prototype as unknown as { readonly next: (this: Parser, ignoreEscapes?: boolean) => void }

/** Keeps the identifiers. `onToken` and `locations` of acorn would do, with objects for each token, and take as long again. */
class NamingParser extends Parser {
  readonly names: { start: number; name: string }[] = []

  static of(options: Options, input: string): NamingParser {
    return new NamingParser(options, input)
  }

  next(ignoreEscapes?: boolean): void {
    const { type, start, value } = this as unknown as AtToken
    if (type === tokTypes.name) this.names.push({ start, name: String(value) })
    next.call(this, ignoreEscapes)
  }
}

/** @throws CarpoolError `internal` if the bundler's output is not of the form that it always had */
export function parseScript(graph: ModuleGraph): ParsedScript {
  const { code, format } = graph
  const comments: Comment[] = []
  const sourceType = format === 'esm' ? 'module' : 'script'
  const parser = NamingParser.of({ ecmaVersion: 'latest', sourceType, allowHashBang: true, onComment: comments }, code)
  const program = parser.parse()
  const { names } = parser
  const statements = (format === 'esm' ? program.body : bodyOfWrapper(program)).filter((statement) => !('directive' in statement))
  const exports =
    graph.entryFormat === 'cjs' ? 'unknown' : format === 'esm' ? exportedNames(statements) : returnedNames(statements, code)
  return { statements, comments, names, entryExports: exports }
}

/** `var x = (() => { ... })()` */
function bodyOfWrapper(program: Program): readonly Statement[] {
  for (const statement of program.body) {
    if (statement.type !== 'VariableDeclaration') continue
    const init = statement.declarations[0]?.init
    if (
      init?.type === 'CallExpression' &&
      init.callee.type === 'ArrowFunctionExpression' &&
      init.callee.body.type === 'BlockStatement'
    ) {
      return init.callee.body.body
    }
  }
  // An entry that exports nothing gets no variable.
  const [only] = program.body.filter((statement) => !('directive' in statement))
  if (only?.type === 'ExpressionStatement' && only.expression.type === 'CallExpression') {
    const { callee } = only.expression
    if (callee.type === 'ArrowFunctionExpression' && callee.body.type === 'BlockStatement') return callee.body.body
  }
  throw new CarpoolError('internal', 'The bundler gave a script of another form than expected.')
}

/** Names in the last `export { ... }` of an ES module. */
function exportedNames(statements: readonly TopLevel[]): string[] {
  return statements.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration') return []
    return statement.specifiers.map(({ exported }) => (exported.type === 'Literal' ? String(exported.value) : exported.name))
  })
}

/** Keys in `__export(entry_exports, { ... })`, where the script returns `__toCommonJS(entry_exports)`. */
function returnedNames(statements: readonly TopLevel[], code: string): readonly string[] | 'unknown' {
  const last = statements.findLast((statement) => statement.type === 'ReturnStatement')
  if (last === undefined) return []
  const namespace = /__toCommonJS\d*\(([\p{ID_Continue}$]+)\)/u.exec(code.slice(last.start, last.end))?.[1]
  const calls = statements.flatMap((statement) => {
    const call = statement.type === 'ExpressionStatement' ? statement.expression : undefined
    if (call?.type !== 'CallExpression' || call.callee.type !== 'Identifier') return []
    const [target, keys] = call.arguments
    return target?.type === 'Identifier' && target.name === namespace ? [{ helper: call.callee.name, keys }] : []
  })
  if (namespace === undefined || calls.some(({ helper }) => helper.startsWith('__reExport'))) return 'unknown'
  return calls.flatMap(({ keys }) => {
    if (keys?.type !== 'ObjectExpression') return []
    return keys.properties.flatMap((property) => {
      if (property.type !== 'Property') return []
      if (property.key.type === 'Identifier') return [property.key.name]
      return property.key.type === 'Literal' ? [String(property.key.value)] : []
    })
  })
}

/** The one property of the object in `var x = __commonJS({ "path"() { ... } })`, and the same of `__esm`. */
export function moduleProperty(statement: TopLevel): Property | undefined {
  const init = statement.type === 'VariableDeclaration' ? statement.declarations[0]?.init : undefined
  const object = init?.type === 'CallExpression' ? init.arguments[0] : undefined
  const property = object?.type === 'ObjectExpression' ? object.properties[0] : undefined
  return property?.type === 'Property' ? property : undefined
}

/**
 * Refuses `require()` of an ES module that awaits at its top level, as Node does. The bundler lets it pass, and the caller
 * would get a module that has not run.
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
