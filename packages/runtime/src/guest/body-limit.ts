import type { BodyKind } from '../bridge.ts'

/** Largest body that may leave, in bytes. */
export let maxBodyBytes = Infinity

/** From now on longer bodies are refused here: to copy half a gigabyte out of the isolate would hold up the whole host. */
export function limitBodies(bytes: number): void {
  maxBodyBytes = bytes
}

/** @param kind of a body whose size is known; a text has at least a byte for each character */
export function tooLongText(what: 'request' | 'response', bytes: number, kind?: BodyKind): string {
  return `The ${what} body has ${kind === 'bytes' ? '' : 'at least '}${bytes} bytes; the limit is ${maxBodyBytes}.`
}
