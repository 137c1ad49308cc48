/** What `path` needs of larger modules. */
function invalid(value: unknown, name: string, type: string): TypeError {
  const shown =
    value === null || value === undefined
      ? `${value as undefined}`
      : typeof value === 'function'
        ? `function ${value.name}`
        : typeof value === 'object'
          ? `an instance of ${value.constructor.name}`
          : `type ${typeof value} (${typeof value === 'bigint' ? `${value}n` : String(value)})`
  const error = new TypeError(`The "${name}" argument must be of type ${type}. Received ${shown}`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

export const validators = {
  validateString: (value: unknown, name: string) => {
    if (typeof value !== 'string') throw invalid(value, name, 'string')
  },
  validateObject: (value: unknown, name: string) => {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw invalid(value, name, 'object')
  },
}

export const util = {
  isWindows: false,
  getLazy: <T>(make: () => T) => {
    let made: { readonly value: T } | undefined
    return () => (made ??= { value: make() }).value
  },
}

export const glob = {
  matchGlobPattern: () => {
    throw new Error('path.matchesGlob is not available in a function.')
  },
}
