/** Largest body that may leave, in bytes. */
export let maxBodyBytes = Infinity

/** From now on longer bodies are refused here: to copy half a gigabyte out of the isolate would hold up the whole host. */
export function limitBodies(bytes: number): void {
  maxBodyBytes = bytes
}

export function tooLongText(what: 'request' | 'response', bytes: number): string {
  return `The ${what} body has at least ${bytes} bytes; the limit is ${maxBodyBytes}.`
}
