/** URLs of blobs, which this isolate alone knows, and keeps until they are revoked. */
import { toText } from '../../language/values.ts'
import { randomUuid } from '../../web-api/crypto.ts'
import { type Blob, isBlob } from './blob.ts'

const PREFIX = 'blob:carpool:'
const blobs = new Map<string, Blob>()

export function createObjectURL(blob: unknown): string {
  if (!isBlob(blob)) throw new TypeError('createObjectURL needs a Blob.')
  const url = PREFIX + randomUuid()
  blobs.set(url, blob)
  return url
}

export function revokeObjectURL(url: unknown): void {
  blobs.delete(toText(url))
}

export function resolveObjectURL(url: string): Blob | undefined {
  return blobs.get(url)
}
