import { numberToString, regExpExec, SafeList, SafeUint8Array, typedArrayLength, viewName } from '../language/primordials.ts'
import { bytesOf } from '../language/values.ts'
import { fillRandom, library } from './host.ts'
import { DOMException } from './dom-exception.ts'

const REQUEST_MAX_BYTES = 65_536
const INTEGER_VIEWS = /^(?:Big)?(?:Int|Uint)(?:8|16|32|64)(?:Clamped)?Array$/

const hex = new SafeList<string>()
/** Of the UUID that is made; kept, for memory that the addon can write to costs more than the bytes in it. */
const uuidBytes = new SafeUint8Array(16)

function hexOf(byte: number): string {
  return (hex[byte] ??= (byte < 16 ? '0' : '') + numberToString(byte, 16))
}

export function randomUuid(): string {
  const bytes = uuidBytes
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
