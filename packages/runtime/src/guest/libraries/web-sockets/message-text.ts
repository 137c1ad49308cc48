/** Messages as they cross the bridge: one character for each byte, a text as UTF-8. */
import { matches, bytesOf, toText } from '../../language/values.ts'
import { bytesFromLatin1, decodeUtf8, encodeUtf8, latin1FromBytes } from '../../web-api/encoding.ts'
import { loadedLibrary, library, type MessageKind } from '../../web-api/host.ts'

const ASCII = /^[\0-\x7f]*$/

export interface Outgoing {
  readonly kind: MessageKind
  readonly text: string
}

/** What `send` is given. */
export function outgoing(data: unknown): Outgoing {
  if (typeof data === 'string') return { kind: 'text', text: encoded(data) }
  const bytes = bytesOf(data)
  if (bytes !== undefined) return { kind: 'bytes', text: latin1FromBytes(bytes) }
  const files = loadedLibrary('files')
  if (files?.isBlob(data)) return { kind: 'bytes', text: latin1FromBytes(files.bytesOfBlob(data)) }
  return { kind: 'text', text: encoded(toText(data)) }
}

/** How many bytes a text has in UTF-8. */
export function utf8Length(text: string): number {
  return encoded(text).length
}

function encoded(text: string): string {
  return matches(text, ASCII) ? text : latin1FromBytes(encodeUtf8(text))
}

/** What an event gives of a message. */
export function incoming(kind: MessageKind, text: string, binaryType: 'arraybuffer' | 'blob'): unknown {
  if (kind === 'text') return matches(text, ASCII) ? text : decodeUtf8(bytesFromLatin1(text))
  const bytes = bytesFromLatin1(text)
  return binaryType === 'blob' ? library('files').blobOf(bytes, '') : bytes.buffer
}
