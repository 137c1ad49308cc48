import { Buffer } from './buffer-global.ts'

declare const require: (name: string) => unknown

interface Environment {
  readonly Buffer: unknown
  stream(): unknown
}

interface Part {
  node(environment: Environment): unknown
}

const environment: Environment = {
  Buffer,
  stream() {
    try {
      return require('node:stream')
    } catch (cause) {
      throw new Error('node:stream, which this is used as, cannot be loaded.', { cause })
    }
  },
}

/**
 * A built-in module that is a part of the host's runtime, with native functions: loaded when the function first imports it, and not
 * in its bundle. It uses the `Buffer` and the streams that are.
 */
export function nodeModuleOf(name: 'crypto' | 'compression'): unknown {
  const parts = (globalThis as Record<symbol, unknown>)[Symbol.for('carpool.parts')] as
    | Readonly<Record<string, () => Part>>
    | undefined
  const load = parts?.[name]
  if (load === undefined) throw new Error(`The built-in module is a part of the host's runtime, which has no '${name}'.`)
  return load().node(environment)
}
