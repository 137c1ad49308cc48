import {
  arrayBufferByteLength,
  dataViewBuffer,
  dataViewByteLength,
  dataViewByteOffset,
  isView,
  SafeUint8Array,
  typedArrayBuffer,
  typedArrayByteLength,
  typedArrayByteOffset,
  viewName,
} from './primordials.ts'

/** The bytes of an ArrayBuffer or a view, not copied; undefined for anything else. */
export function bytesOf(source: unknown): Uint8Array | undefined {
  if (typeof source !== 'object' || source === null) return undefined
  if (isView(source)) {
    return viewName(source) === undefined
      ? new SafeUint8Array(dataViewBuffer(source), dataViewByteOffset(source), dataViewByteLength(source))
      : new SafeUint8Array(typedArrayBuffer(source), typedArrayByteOffset(source), typedArrayByteLength(source))
  }
  return isBuffer(source) ? new SafeUint8Array(source) : undefined
}

function isBuffer(source: object): source is ArrayBuffer {
  try {
    arrayBufferByteLength(source)
    return true
  } catch {
    return false
  }
}
