/**
 * The rule of `src/guest`, for oxlint: code between the bridge and user code uses what `language/primordials.ts` took before
 * user code ran, and nothing that user code may have replaced meanwhile. It sees no types, so it goes by names; what it cannot
 * see, `poison.test.ts` finds.
 */
import { runInNewContext } from 'node:vm'

interface Node {
  readonly type: string
  readonly parent: Node | null
  readonly [key: string]: unknown
}

interface Context {
  readonly sourceCode: { getText(node: Node): string }
  report(problem: { node: Node; message: string }): void
}

const names = (script: string): Set<string> => new Set(runInNewContext(script) as Iterable<string>)

/** What a bare context has, but for what nobody can change. */
const GLOBALS = names(
  `Object.getOwnPropertyNames(globalThis).filter((name) => !['undefined', 'NaN', 'Infinity'].includes(name)).concat('WebAssembly')`,
)

/** The methods of all that such a context has. */
const METHODS = names(`
  const found = new Set(['then', 'next'])
  const seen = new Set()
  const walk = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return
    seen.add(value)
    for (const key of Reflect.ownKeys(value)) {
      const { value: member } = Reflect.getOwnPropertyDescriptor(value, key)
      if (key === 'prototype' && member !== undefined) methodsOf(member)
      walk(member)
    }
    walk(Reflect.getPrototypeOf(value))
  }
  const methodsOf = (prototype) => {
    for (const key of Reflect.ownKeys(prototype)) {
      const { value } = Reflect.getOwnPropertyDescriptor(prototype, key)
      if (typeof key === 'string' && typeof value === 'function' && key !== 'constructor') found.add(key)
    }
  }
  walk(globalThis)
  found`)

/** Collections that no change of a prototype reaches. */
const SAFE_COLLECTION = /\bSafe(?:Map|Set|WeakMap)\b/
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
/** Where a name stands for a type, or for itself. */
const NO_VALUE =
  /^(?:TSTypeReference|TSQualifiedName|TSTypeQuery|TSExpressionWithTypeArguments|TSInterfaceHeritage|TSClassImplements|TSTypeParameter|TSModuleDeclaration|ImportSpecifier|ExportSpecifier|TSTypeAliasDeclaration|TSInterfaceDeclaration|TSTypePredicate)$/

function isInFunction(node: Node): boolean {
  for (let at = node.parent; at !== null; at = at.parent) if (FUNCTIONS.has(at.type)) return true
  return false
}

function isReference(node: Node): boolean {
  const { parent } = node
  if (parent === null || NO_VALUE.test(parent.type)) return false
  if (parent.type === 'MemberExpression') return parent['object'] === node || parent['computed'] === true
  if (/^(?:Property|MethodDefinition|PropertyDefinition)$/.test(parent.type)) {
    return parent['value'] === node || parent['computed'] === true
  }
  return !parent.type.startsWith('TS') || /^TS(?:As|Satisfies|NonNull)/.test(parent.type)
}

const rule = {
  create(context: Context): Record<string, (node: Node) => void> {
    /** Names of variables, parameters and fields that hold safe collections, and of types that are such. */
    const safe = new Set<string>()
    const report = (node: Node, message: string): void => context.report({ node, message })
    const text = (node: unknown): string => context.sourceCode.getText(node as Node)
    const noteSafe = (name: unknown, ...told: unknown[]): void => {
      const said = told.filter((part) => part !== null && part !== undefined).map(text)
      const isSafe = said.some((part) => SAFE_COLLECTION.test(part) || [...safe].some((type) => part.includes(type)))
      if (isSafe) safe.add(text(name).replace(/[?!]?:.*$/s, ''))
    }
    const calls: { node: Node; receiver: string; method: string }[] = []
    return {
      TSTypeAliasDeclaration: (node) => noteSafe(node['id'], node['typeAnnotation']),
      VariableDeclarator: (node) => noteSafe(node['id'], node['id'], node['init']),
      PropertyDefinition: (node) => noteSafe(node['key'], node['typeAnnotation'], node['value']),
      Identifier(node) {
        if (FUNCTIONS.has(node.parent?.type ?? '')) noteSafe(node, node['typeAnnotation'])
        const name = node['name'] as string
        if (!GLOBALS.has(name) || !isReference(node) || !isInFunction(node)) return
        report(node, `${name} may have been replaced: take it from primordials.ts.`)
      },
      CallExpression(node) {
        const callee = node['callee'] as Node
        if (callee.type !== 'MemberExpression' || callee['computed'] === true) return
        const property = callee['property'] as Node
        const method = property['name'] as string
        if (property.type === 'PrivateIdentifier' || !METHODS.has(method)) return
        const receiver = text(callee['object']).split('.').at(-1) ?? ''
        calls.push({ node, receiver: receiver.replace(/[?!]$/, ''), method })
      },
      ForOfStatement(node) {
        if (isInFunction(node)) report(node, 'for-of asks Symbol.iterator, which may have been replaced: count, or use valuesOf.')
      },
      SpreadElement(node) {
        if (node.parent?.type !== 'ObjectExpression') report(node, 'A spread asks Symbol.iterator, which may have been replaced.')
      },
      ArrayPattern: (node) => report(node, 'A pattern of an array asks Symbol.iterator, which may have been replaced.'),
      ArrayExpression(node) {
        const isKept = /^(?:VariableDeclarator|AssignmentExpression|PropertyDefinition)$/.test(node.parent?.type ?? '')
        const isEmpty = (node['elements'] as unknown[]).length === 0
        if (isEmpty && isKept) report(node, 'An array asks the setters of Array.prototype when it grows: use SafeList.')
      },
      BinaryExpression(node) {
        if (node['operator'] === 'instanceof') report(node, 'instanceof asks Symbol.hasInstance: use isInstance or a brand.')
      },
      YieldExpression: (node) => report(node, 'The prototype of generators may have been changed.'),
      'Program:exit'() {
        for (const { node, receiver, method } of calls) {
          if (safe.has(receiver)) continue
          report(node, `${method} may have been replaced: call the function of primordials.ts, or use a safe collection.`)
        }
      },
    }
  },
}

export default { meta: { name: 'guest' }, rules: { primordials: rule } }
