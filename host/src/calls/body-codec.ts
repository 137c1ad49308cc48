import { isUtf8 } from 'node:buffer'
import type { BodyKind } from '@carpool/runtime/bridge'
import { NO_BODY } from '@carpool/wire'

/** Turns bytes into the string form in which a body enters a guest. */
export function encodeBody(bytes: Uint8Array): [kind: BodyKind, body: string] {
  if (bytes.length === 0) return ['none', '']
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return isUtf8(buffer) ? ['text', buffer.toString('utf8')] : ['bytes', buffer.toString('latin1')]
}

/** Turns a body that left a guest back into bytes. */
export function decodeBody(kind: BodyKind, body: string): Uint8Array {
  if (kind === 'none' || body.length === 0) return NO_BODY
  return Buffer.from(body, kind === 'bytes' ? 'latin1' : 'utf8')
}
