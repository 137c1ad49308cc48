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

/** What `node:crypto` needs of the other modules in the function's bundle. */
export interface Environment {
  readonly Buffer: BufferClass
  /** Loads `node:stream`, which most functions that use `node:crypto` never need. */
  stream(): StreamModule
}

export let environment: Environment

export function connectEnvironment(given: Environment): void {
  environment = given
}
