import type { Pattern, VariableDeclaration } from 'acorn'
import { spliceLine, type MappedLine } from './mapped-line.ts'
import type { ParsedScript, TopLevel } from './parse-script.ts'

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
export function reassign(lines: MappedLine[], { loc }: VariableDeclaration): void {
  const { start, end } = loc!
  lines[end.line - 1] = spliceLine(lines[end.line - 1]!, end.column - 1, end.column - 1, ')')
  lines[start.line - 1] = spliceLine(lines[start.line - 1]!, start.column, start.column + 'var '.length, ';  (')
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
