import { type INTRINSICS, INTRINSICS_NUMBER, LIBRARIES, type LibraryName } from '../libraries.ts'
import { SafeList } from './language/primordials.ts'
import { loadLibrary } from './port.ts'

/** What each library exports. */
interface Libraries {
  readonly clone: typeof import('./libraries/clone.ts')
  readonly compression: typeof import('./libraries/compression.ts')
  readonly crypto: typeof import('./libraries/crypto.ts')
  readonly 'encoding-streams': typeof import('./libraries/encoding-streams.ts')
  readonly encodings: typeof import('./libraries/encodings.ts')
  readonly events: typeof import('./libraries/events.ts')
  readonly files: typeof import('./libraries/files.ts')
  readonly language: typeof import('./libraries/language.ts')
  readonly messages: typeof import('./libraries/messages.ts')
  readonly performance: typeof import('./libraries/performance.ts')
  readonly streams: typeof import('./libraries/streams.ts')
  readonly url: typeof import('./libraries/url.ts')
  readonly 'web-assembly': typeof import('./libraries/web-assembly.ts')
  readonly 'web-sockets': typeof import('./libraries/web-sockets.ts')
  readonly 'url-pattern': typeof import('./libraries/url-pattern.ts')
}

/** By their numbers; what the core shares is number 0. */
const loaded = new SafeList<unknown>()
let share: () => object
/** As they were before any user code. */
const intrinsics = {
  Array,
  Error,
  Function,
  Iterator,
  JSON,
  Map,
  Math,
  Number,
  Object,
  Promise,
  RangeError,
  Reflect,
  RegExp,
  Set,
  String,
  Symbol,
  TypeError,
  Uint8Array,
  WeakMap,
} satisfies Record<(typeof INTRINSICS)[number], unknown>

/** Says what the core shares with libraries. The bundler calls it. */
export function shareCore(make: () => object): void {
  share = make
}

function requirePart(number: number): unknown {
  if (number === INTRINSICS_NUMBER) return intrinsics
  const known = loaded[number]
  if (known !== undefined) return known
  const exported = number === 0 ? share() : loadLibrary(number, requirePart)
  loaded[number] = exported
  return exported
}

function numberOf(name: LibraryName): number {
  let index = 0
  while (LIBRARIES[index] !== name) index++
  return index + 1
}

/** A library if it was loaded: what it makes cannot be there before. */
export function loadedLibrary<N extends LibraryName>(name: N): Libraries[N] | undefined {
  return loaded[numberOf(name)] as Libraries[N] | undefined
}

/**
 * Gives a library, which it loads if this is the first time: what that takes is on the bill of the entry that runs. User code may
 * have changed the language by then, so nothing that bill, limits or clock depend on may be in one.
 */
export function library<N extends LibraryName>(name: N): Libraries[N] {
  return requirePart(numberOf(name)) as Libraries[N]
}
