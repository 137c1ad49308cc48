import { DOMException } from '../../web-api/dom-exception.ts'

/** @throws DOMException of that name */
export function fail(name: string, message: string, cause?: unknown): never {
  throw new DOMException(message, cause === undefined ? name : { name, cause })
}

/** @throws DOMException `OperationError` for what goes wrong, but for a lack of memory */
export function attempt<T>(run: () => T): T {
  try {
    return run()
  } catch (cause) {
    if (cause instanceof RangeError) throw cause
    return fail('OperationError', 'The operation failed for an operation-specific reason', cause)
  }
}
