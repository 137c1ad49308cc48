type Bytes = Uint8Array<ArrayBuffer>

/** What the part needs of the runtime that it belongs to. */
export interface Runtime {
  readonly DOMException: new (message: string, options: string | { name: string; cause: unknown }) => Error
  encodeUtf8(text: string): Bytes
  decodeUtf8(bytes: Uint8Array): string
  randomUuid(): string
}

export let runtime: Runtime

export function connectRuntime(given: Runtime): void {
  runtime = given
}

/** @throws DOMException of that name */
export function fail(name: string, message: string, cause?: unknown): never {
  throw new runtime.DOMException(message, cause === undefined ? name : { name, cause })
}
