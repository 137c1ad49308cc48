type ErrorClass = new (message: string) => Error

/** An error as Node.js makes it. */
export function nodeError(code: string, message: string, Class: ErrorClass = Error): Error {
  return Object.assign(new Class(message), { code })
}

export function invalidType(name: string, expected: string, value: unknown): Error {
  const given = value === null || value === undefined ? String(value) : `type ${typeof value}`
  return nodeError('ERR_INVALID_ARG_TYPE', `The "${name}" argument must be ${expected}. Received ${given}`, TypeError)
}

export function invalidValue(name: string, value: unknown): Error {
  return nodeError('ERR_INVALID_ARG_VALUE', `The argument '${name}' is invalid. Received ${String(value)}`, TypeError)
}

/** As OpenSSL says that it is none. */
export function notDecoded(): Error {
  const error = nodeError('ERR_OSSL_UNSUPPORTED', 'error:1E08010C:DECODER routines::unsupported')
  return Object.assign(error, { library: 'DECODER routines', reason: 'unsupported' })
}

/** What native functions say in one line, as Node.js has it. */
const KNOWN: Readonly<Record<string, readonly [code: string, Class: ErrorClass]>> = {
  'Invalid key length': ['ERR_CRYPTO_INVALID_KEYLEN', RangeError],
  'Invalid initialization vector': ['ERR_CRYPTO_INVALID_IV', TypeError],
  'Invalid digest': ['ERR_CRYPTO_INVALID_DIGEST', TypeError],
}

/** Runs native code, and has its errors carry what those of Node.js do. */
export function native<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw decorated(error as Error)
  }
}

function decorated(error: Error): Error {
  const known = KNOWN[error.message]
  if (known !== undefined) return nodeError(known[0], error.message, known[1])
  const parts = /^error:[\dA-F]+:([^:]*):[^:]*:(.*)$/.exec(error.message)
  if (parts === null) return error
  const [, library, reason] = parts as unknown as [string, string, string]
  return Object.assign(error, { library, reason, code: `ERR_OSSL_${reason.toUpperCase().replaceAll(/[ -]/g, '_')}` })
}
