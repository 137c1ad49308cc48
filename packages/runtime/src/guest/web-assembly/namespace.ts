import {
  bytesCopy,
  bytesFromBase64,
  construct,
  defineProperty,
  getOwnPropertyDescriptor,
  getterOf,
  isInstance,
  isInteger,
  max,
  objectKeys,
  ownKeys,
  ownValue,
  SafeTypeError,
  SafeWeakMap,
  setHidden,
  trunc,
  typedArrayLength,
} from '../language/primordials.ts'
import { lookLike, takePlaceOf } from '../language/substitutes.ts'
import { bytesOf, toNumber } from '../language/values.ts'
import { isKept, keepFor, reserve } from '../memory/reservation.ts'
import { capMemories, cappedMaximum, PAGE_BYTES } from './memory-limits.ts'

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

/**
 * What functions get of WebAssembly. Left out: what compiles on other threads or while it streams in, whose end V8 reports
 * outside of entries; `JSTag`; and what suspends a stack (`Suspending`, `promising`).
 */
const TAKEN_OVER = [
  'Table',
  'Global',
  'Tag',
  'Exception',
  'CompileError',
  'LinkError',
  'RuntimeError',
  Symbol.toStringTag,
] as const

const NOT_HERE =
  'A function compiles WebAssembly when it is loaded: import the .wasm file. The operator can allow more by the setting webAssembly.'

const PAGES_PER_MIB = 16
/** A memory that does not say how far it wants to grow may take this part of the function's memory limit. */
const SHARE_OF_ONE = 1 / 4
/** What V8 keeps of a module for each of its bytes, with the code that it makes of them. Measured with plain arithmetic: 3.4. */
const CODE_FACTOR = 4
/** As much as addresses of 32 bits reach. */
const PAGES_MAX = 65_536

interface MemoryDescriptor {
  readonly initial?: unknown
  readonly maximum?: unknown
  readonly shared?: unknown
  readonly address?: unknown
}

export interface GuestWebAssembly {
  readonly namespace: object
  /** Compiles modules in base64, each under a name that stands in its errors. */
  readonly compileFiles: (files: Readonly<Record<string, string>>) => Record<string, object>
}

/**
 * A WebAssembly that works within entries only. Its memories count against the function's memory limit, with all that they may
 * grow to.
 * @param memoryMb that limit, in MiB
 * @param compiles whether user code may compile bytes, or has only the modules of `compileFiles`
 */
export function guestWebAssembly(native: NativeWebAssembly, memoryMb: number, compiles: boolean): GuestWebAssembly {
  const limitPages = max(1, trunc(memoryMb * PAGES_PER_MIB * SHARE_OF_ONE))
  /** How far the memories of a module's instances may grow. Each module is here. */
  const pagesOf = new SafeWeakMap<object, number>()
  const exportsOf = getterOf<Record<PropertyKey, unknown>>(native.Instance.prototype, 'exports')
  const bufferOf = getterOf<ArrayBuffer>(native.Memory.prototype, 'buffer')
  const { validate } = native
  const refusal = (what: string): string => `${what} does not fit into what is left of the memory limit of ${memoryMb} MiB.`

  const makeModule = (source: unknown, newTarget: NativeClass): object => {
    if (!compiles) throw new native.CompileError(NOT_HERE)
    return compileModule(source, newTarget, 'a WebAssembly module')
  }

  const compileModule = (source: unknown, newTarget: NativeClass, name: string): object => {
    const bytes = bytesOf(source)
    if (bytes === undefined) throw new SafeTypeError('WebAssembly.Module needs the bytes of a module.')
    const capped = capMemories(bytesCopy(bytes), limitPages)
    if (!capped.ok) throw new native.CompileError(capped.message)
    const size = typedArrayLength(capped.bytes)
    const reservation = reserve(size * CODE_FACTOR, refusal(`The code of ${name} of ${size} bytes`))
    const module = construct(native.Module, [capped.bytes], newTarget) as object
    keepFor(module, reservation)
    pagesOf.set(module, capped.pages)
    return module
  }

  const compileFiles = (files: Readonly<Record<string, string>>): Record<string, object> => {
    const modules = { __proto__: null } as unknown as Record<string, object>
    const names = objectKeys(files)
    for (let index = 0; index < names.length; index++) {
      const name = names[index]!
      try {
        modules[name] = compileModule(bytesFromBase64(files[name]!), native.Module, name)
      } catch (error) {
        if (!isInstance(native.CompileError, error)) throw error
        throw new native.CompileError(`${name}: ${(error as Error).message}`)
      }
    }
    return modules
  }

  const makeInstance = (module: unknown, imports: unknown, newTarget: NativeClass): object => {
    const pages = typeof module === 'object' && module !== null ? pagesOf.get(module) : undefined
    if (pages === undefined) throw new SafeTypeError('WebAssembly.Instance needs a WebAssembly.Module.')
    if (pages === 0) return construct(native.Instance, [module, imports], newTarget) as object
    const reservation = reserveMemory(pages)
    let instance
    try {
      instance = construct(native.Instance, [module, imports], newTarget) as object
    } catch (error) {
      // Code that ran at its start may have handed out its functions, and with them it lives on, as does its module.
      keepFor(module as object, reservation)
      throw error
    }
    keepFor(instance, reservation)
    keepForMemories(exportsOf(instance), reservation)
    return instance
  }

  const reserveMemory = (pages: number): ArrayBuffer =>
    reserve(pages * PAGE_BYTES, refusal(`A WebAssembly memory that may grow to ${pages} pages of 64 KiB`))

  /** A memory may outlive its instance. */
  const keepForMemories = (exported: object, reservation: ArrayBuffer): void => {
    const names = ownKeys(exported)
    for (let index = 0; index < names.length; index++) {
      const value = ownValue(exported, names[index]!)
      if (typeof value === 'object' && value !== null && isMemory(value) && !isKept(value)) keepFor(value, reservation)
    }
  }

  const isMemory = (value: object): boolean => {
    try {
      bufferOf(value)
      return true
    } catch {
      return false
    }
  }

  function Module(this: unknown, source: unknown): object {
    return makeModule(source, requireNew(new.target, 'Module'))
  }

  function Instance(this: unknown, module: unknown, imports: unknown): object {
    return makeInstance(module, imports, requireNew(new.target, 'Instance'))
  }

  function Memory(this: unknown, descriptor: unknown): object {
    const newTarget = requireNew(new.target, 'Memory')
    const { initial, maximum } = readDescriptor(descriptor)
    const capped = cappedMaximum(initial, maximum, limitPages)
    // V8 says what is wrong with the numbers.
    const isValid = initial <= PAGES_MAX && (maximum === undefined || (maximum >= initial && maximum <= PAGES_MAX))
    const reservation = isValid ? reserveMemory(capped) : undefined
    const memory = construct(
      native.Memory,
      [{ __proto__: null, initial, maximum: isValid ? capped : maximum }],
      newTarget,
    ) as object
    if (reservation !== undefined) keepFor(memory, reservation)
    return memory
  }

  const methods = {
    validate(this: void, source: unknown): boolean {
      const bytes = bytesOf(source)
      if (bytes === undefined) throw new SafeTypeError('WebAssembly.validate needs the bytes of a module.')
      const capped = capMemories(bytesCopy(bytes), limitPages)
      return capped.ok && validate(capped.bytes)
    },
    // oxlint-disable-next-line typescript/require-await -- what it throws is to reject
    async compile(this: void, source: unknown): Promise<object> {
      return makeModule(source, native.Module)
    },
    // oxlint-disable-next-line typescript/require-await -- what it throws is to reject
    async instantiate(this: void, source: unknown, imports?: unknown): Promise<object> {
      if (typeof source === 'object' && source !== null && pagesOf.has(source))
        return makeInstance(source, imports, native.Instance)
      const module = makeModule(source, native.Module)
      return { module, instance: makeInstance(module, imports, native.Instance) }
    },
  }

  const namespace = {}
  setHidden(namespace, 'Module', takePlaceOf(Module, native.Module))
  setHidden(namespace, 'Instance', takePlaceOf(Instance, native.Instance))
  setHidden(namespace, 'Memory', takePlaceOf(Memory, native.Memory))
  setHidden(namespace, 'validate', lookLike(methods.validate, validate))
  setHidden(namespace, 'compile', lookLike(methods.compile, native.compile))
  setHidden(namespace, 'instantiate', lookLike(methods.instantiate, native.instantiate))
  for (let index = 0; index < TAKEN_OVER.length; index++) {
    const descriptor = getOwnPropertyDescriptor(native, TAKEN_OVER[index]!)
    if (descriptor !== undefined) defineProperty(namespace, TAKEN_OVER[index]!, descriptor)
  }
  return { namespace, compileFiles }
}

function requireNew(newTarget: unknown, name: string): NativeClass {
  if (newTarget === undefined) throw new SafeTypeError(`WebAssembly.${name} must be called with new.`)
  return newTarget as NativeClass
}

/** Reads each property once: a getter that gives something else the second time changes nothing. */
function readDescriptor(descriptor: unknown): { initial: number; maximum: number | undefined } {
  if (typeof descriptor !== 'object' || descriptor === null) throw new SafeTypeError('WebAssembly.Memory needs a descriptor.')
  const { initial, maximum, shared, address } = descriptor as MemoryDescriptor
  if (shared !== undefined && shared !== false) throw new SafeTypeError('WebAssembly.Memory cannot be shared.')
  if (address !== undefined && address !== 'i32') throw new SafeTypeError('WebAssembly.Memory has addresses of 32 bits only.')
  return { initial: pagesFrom(initial, 'initial'), maximum: maximum === undefined ? undefined : pagesFrom(maximum, 'maximum') }
}

function pagesFrom(value: unknown, name: string): number {
  const pages = trunc(toNumber(value))
  if (!isInteger(pages) || pages < 0)
    throw new SafeTypeError(`The ${name} size of a WebAssembly.Memory must be a whole number of pages.`)
  return pages
}
