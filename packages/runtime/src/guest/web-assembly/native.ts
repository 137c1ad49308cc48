/** The parts of V8's WebAssembly that the runtime touches. */
export interface NativeWebAssembly {
  readonly Module: NativeClass
  readonly Instance: NativeClass
  readonly Memory: NativeClass
  readonly CompileError: new (message: string) => Error
  readonly validate: (bytes: Uint8Array) => boolean
  readonly compile: (...args: unknown[]) => unknown
  readonly instantiate: (...args: unknown[]) => unknown
}

export type NativeClass = (new (...args: never[]) => object) & { readonly prototype: object }

declare global {
  /** Of the guest's context; gone once the globals are installed. */
  var WebAssembly: NativeWebAssembly
}
