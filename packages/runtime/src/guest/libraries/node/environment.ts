/** The class `Buffer` of the function's bundle, as far as it is needed. */
export interface BufferClass {
  from(data: string, encoding?: string): NodeBuffer
  from(buffer: ArrayBuffer, offset?: number, length?: number): NodeBuffer
  isEncoding(encoding: string): boolean
}

export interface NodeBuffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: string): string
}

type StreamClass = new (options?: object) => object

export interface StreamModule {
  readonly Transform: StreamClass & { readonly prototype: object }
  readonly Writable: StreamClass & { readonly prototype: object }
}

/** Turns what comes piece by piece into text, of which a character may lie in two pieces. */
export interface StringDecoder {
  /** By the one name that Node.js has for it. */
  readonly encoding: string
  write(bytes: Uint8Array): string
  end(bytes: Uint8Array): string
}

/** What `node:crypto` and `node:zlib` need of the other modules in the function's bundle. */
export interface Environment {
  readonly Buffer: BufferClass
  /** @throws TypeError if there is no such encoding */
  decoder(encoding: string): StringDecoder
  /** Loads `node:stream`, which most functions that use `node:crypto` never need. */
  stream(): StreamModule
}

export let environment: Environment

export function connectEnvironment(given: Environment): void {
  environment = given
}
