import {
  bytesFill,
  bytesPart,
  bytesSet,
  min,
  numberToString,
  regExpExec,
  SafeList,
  SafeTypeError,
  SafeUint8Array,
  typedArrayLength,
  viewName,
} from '../language/primordials.ts'
import { bytesOf } from '../language/values.ts'
import { ENTROPY_BYTES, entropy, library } from './host.ts'
import { DOMException } from './dom-exception.ts'
import { bytesFromLatin1 } from './encoding.ts'

const REQUEST_MAX_BYTES = 65_536
const INTEGER_VIEWS = /^(?:Big)?(?:Int|Uint)(?:8|16|32|64)(?:Clamped)?Array$/

/** What the host gave last, until it is first drawn from. */
let fresh = ''
let pool = new SafeUint8Array(0)
let poolLength = 0
let used = 0
const hex = new SafeList<string>()

/** Fetches the first pool of random bytes: at boot, where blocking for it costs nobody. */
export function startEntropy(): void {
  fresh = entropy() ?? ''
}

/** Fills with random bytes, each of which is given out once and then erased here. */
function fillRandom(target: Uint8Array): void {
  const length = typedArrayLength(target)
  for (let filled = 0; filled < length; ) {
    if (used === poolLength) refill()
    const count = min(length - filled, poolLength - used)
    bytesSet(target, bytesPart(pool, used, used + count), filled)
    bytesFill(pool, 0, used, used + count)
    used += count
    filled += count
  }
}

function refill(): void {
  const text = fresh === '' ? entropy() : fresh
  fresh = ''
  if (text === undefined) return exhaustHeap()
  if (text.length !== ENTROPY_BYTES) throw new SafeTypeError('There are no random bytes.')
  pool = bytesFromLatin1(text)
  poolLength = ENTROPY_BYTES
  used = 0
}

/** The heap had no room for a text of 4 KB. What is left of it goes at once, so that the isolate ends by its memory limit. */
function exhaustHeap(): never {
  for (let all: object | null = null; ; ) all = { __proto__: null, all }
}

function hexOf(byte: number): string {
  return (hex[byte] ??= (byte < 16 ? '0' : '') + numberToString(byte, 16))
}

export function randomUuid(): string {
  const bytes = new SafeUint8Array(16)
  fillRandom(bytes)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  let text = ''
  for (let index = 0; index < 16; index++) {
    text += (index === 4 || index === 6 || index === 8 || index === 10 ? '-' : '') + hexOf(bytes[index]!)
  }
  return text
}

export class Crypto {
  get subtle(): unknown {
    return library('crypto').subtle
  }

  getRandomValues<T>(array: T): T {
    const view = viewName(array)
    if (view === undefined || regExpExec(INTEGER_VIEWS, view) === null) {
      throw new DOMException('getRandomValues needs a typed array of integers.', 'TypeMismatchError')
    }
    const bytes = bytesOf(array)!
    const length = typedArrayLength(bytes)
    if (length > REQUEST_MAX_BYTES) {
      throw new DOMException(`getRandomValues gives ${REQUEST_MAX_BYTES} bytes at most, not ${length}.`, 'QuotaExceededError')
    }
    fillRandom(bytes)
    return array
  }

  randomUUID(): string {
    return randomUuid()
  }

  get [Symbol.toStringTag](): string {
    return 'Crypto'
  }
}
