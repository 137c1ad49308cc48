/** `data:` URLs, by the Fetch standard. */
import { MIMEType } from 'whatwg-mimetype'
import { bytesFromLatin1, encodeUtf8 } from '../../web-api/encoding.ts'
import { resolveObjectURL } from './object-url.ts'
import { bytesOfBlob, typeOfBlob } from './blob.ts'

interface DataResponse {
  readonly type: string
  readonly bytes: Uint8Array
}

/** What a `data:` or `blob:` URL, without its fragment, stands for; undefined if it is broken or not known. */
export function responseOfData(url: string): DataResponse | undefined {
  if (url.startsWith('data:')) return dataOf(url.slice('data:'.length))
  const blob = resolveObjectURL(url)
  return blob === undefined ? undefined : { type: typeOfBlob(blob), bytes: bytesOfBlob(blob) }
}

const BASE64 = /;[ ]*base64$/i

function dataOf(input: string): DataResponse | undefined {
  const comma = input.indexOf(',')
  if (comma === -1) return undefined
  let type = input.slice(0, comma).replaceAll(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, '')
  let bytes = percentDecoded(input.slice(comma + 1))
  if (BASE64.test(type)) {
    const decoded = fromBase64(bytes)
    if (decoded === undefined) return undefined
    bytes = decoded
    type = type.replace(BASE64, '')
  }
  if (type.startsWith(';')) type = `text/plain${type}`
  return { type: String(MIMEType.parse(type) ?? 'text/plain;charset=US-ASCII'), bytes }
}

function percentDecoded(text: string): Uint8Array {
  const raw = encodeUtf8(text)
  if (!text.includes('%')) return raw
  const bytes = new Uint8Array(raw.length)
  let length = 0
  for (let index = 0; index < raw.length; index++) {
    const value = raw[index] === 0x25 ? Number.parseInt(hexAt(raw, index + 1), 16) : Number.NaN
    if (Number.isNaN(value)) bytes[length++] = raw[index]!
    else {
      bytes[length++] = value
      index += 2
    }
  }
  return bytes.subarray(0, length)
}

function hexAt(bytes: Uint8Array, index: number): string {
  const text = String.fromCharCode(bytes[index] ?? 0, bytes[index + 1] ?? 0)
  return /^[\da-f]{2}$/i.test(text) ? text : ''
}

/** "Forgiving-base64 decode" of the Infra standard. */
function fromBase64(bytes: Uint8Array): Uint8Array | undefined {
  try {
    let text = ''
    for (let index = 0; index < bytes.length; index += 8192) text += String.fromCharCode(...bytes.subarray(index, index + 8192))
    return bytesFromLatin1(atob(text))
  } catch {
    return undefined
  }
}
