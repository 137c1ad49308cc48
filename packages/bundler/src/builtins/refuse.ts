/** What of a module of Node.js a function cannot do, by the names under which it is called: each throws when it is used. */
export function refuse(module: string, why: string, names: readonly string[]): Record<string, (...args: never[]) => unknown> {
  return Object.fromEntries(names.map((name) => [name, refused(module, name, why)]))
}

/** A function that can be called with `new`, extended and asked for properties, but throws when it runs. */
function refused(module: string, name: string, why: string): (...args: never[]) => unknown {
  const fail = function (): never {
    const error = new Error(`node:${module}.${name} is not available in a function: ${why}.`)
    throw Object.assign(error, { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' })
  }
  Object.defineProperty(fail, 'name', { value: name, configurable: true })
  return fail
}

/** A module of which nothing works: what Node.js' has, by kind. */
export function refusedModule(
  module: string,
  why: string,
  functions: readonly string[],
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return { ...values, ...refuse(module, why, functions) }
}
