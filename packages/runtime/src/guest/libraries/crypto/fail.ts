import { DOMException } from '../../web-api/dom-exception.ts'

/** @throws DOMException of that name */
export function fail(name: string, message: string, cause?: unknown): never {
  throw new DOMException(message, cause === undefined ? name : { name, cause })
}
