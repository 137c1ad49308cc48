/** `multipart/form-data`, both ways. */
import { MIMEType } from 'whatwg-mimetype'
import { bytesFromLatin1, decodeUtf8, encodeUtf8, stripBom } from '../../web-api/encoding.ts'
import { parseForm } from '../../web-api/url/percent-encoding.ts'
import { blobOf, bytesOfBlob, fileOf, typeOfBlob } from './blob.ts'
import { entriesOf, type FormData, formDataOf, type FormEntry } from './form-data.ts'

/** Most parts of a body: each becomes several objects, however short it is. */
const MAX_PARTS = 10_000
/** Longest head of a part, in bytes. */
const MAX_PART_HEAD = 16_384

const LINE_BREAK = /\r\n?|(?<!\r)\n/g

/** Writes form data as a body. */
export function encodeMultipart(form: FormData, boundary: string): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = []
  for (const [name, value] of entriesOf(form)) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name.replaceAll(LINE_BREAK, '\r\n'))}"`
    if (typeof value === 'string') {
      pieces.push(encodeUtf8(`${head}\r\n\r\n${value.replaceAll(LINE_BREAK, '\r\n')}\r\n`))
    } else {
      const type = typeOfBlob(value) || 'application/octet-stream'
      pieces.push(encodeUtf8(`${head}; filename="${escaped(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`))
      pieces.push(bytesOfBlob(value), encodeUtf8('\r\n'))
    }
  }
  pieces.push(encodeUtf8(`--${boundary}--\r\n`))
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let offset = 0
  for (const piece of pieces) {
    bytes.set(piece, offset)
    offset += piece.length
  }
  return bytes
}

function escaped(name: string): string {
  return name.replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22')
}

/** A body that is read as a form, in the forms that it may be needed in. */
interface FormBody {
  text(): string
  /** One character for each byte. */
  latin1(): string
}

/**
 * Reads a body of a content type as a form.
 * @throws TypeError if it is none, is broken, or has too many parts
 */
export function readForm(contentType: string | null, body: FormBody): FormData {
  const type = contentType === null ? null : MIMEType.parse(contentType)
  if (type?.essence === 'multipart/form-data') {
    const boundary = type.parameters.get('boundary')
    if (boundary === undefined || boundary === '') throw new TypeError('The content type of the form names no boundary.')
    return formDataOf(parseMultipart(body.latin1(), boundary))
  }
  if (type?.essence === 'application/x-www-form-urlencoded') {
    const entries: FormEntry[] = []
    const pairs = parseForm(body.text())
    for (let index = 0; index < pairs.length; index++) entries.push([pairs[index]![0], pairs[index]![1]])
    return formDataOf(entries)
  }
  throw new TypeError(`A body of content type ${JSON.stringify(contentType ?? '')} cannot be read as form data.`)
}

/** Looks at each byte a few times at most, so it takes time in proportion to the length. */
function parseMultipart(text: string, boundary: string): FormEntry[] {
  const delimiter = `--${boundary}`
  const entries: FormEntry[] = []
  // Some clients put line breaks in front.
  let at = 0
  while (text.startsWith('\r\n', at)) at += 2
  for (;;) {
    if (!text.startsWith(delimiter, at)) throw broken(at, 'the boundary is missing')
    at += delimiter.length
    if (text.startsWith('--', at)) return entries
    if (!text.startsWith('\r\n', at)) throw broken(at, 'no line break follows the boundary')
    at += 2
    if (entries.length === MAX_PARTS) throw new TypeError(`The form has more than ${MAX_PARTS} parts.`)
    const headEnd = text.startsWith('\r\n', at) ? at : text.slice(at, at + MAX_PART_HEAD + 4).indexOf('\r\n\r\n') + at
    if (headEnd < at) {
      if (text.length - at > MAX_PART_HEAD) throw new TypeError(`The head of a part has more than ${MAX_PART_HEAD} bytes.`)
      throw broken(at, 'the head of a part has no end')
    }
    const head = headOf(text.slice(at, headEnd), at)
    at = headEnd + (text.startsWith('\r\n', headEnd) && headEnd === at ? 2 : 4)
    const end = text.indexOf(`\r\n${delimiter}`, at)
    if (end === -1) throw broken(at, 'the last part has no end')
    const bytes = head.isBase64 ? fromBase64(text.slice(at, end)) : bytesFromLatin1(text.slice(at, end))
    if (bytes === undefined) throw broken(at, 'a part is no base64')
    entries.push(entryOf(head, bytes))
    at = end + 2
  }
}

function broken(at: number, why: string): TypeError {
  return new TypeError(`The form cannot be read: ${why} (at byte ${at}).`)
}

interface Head {
  readonly name: string
  readonly filename: string | undefined
  readonly type: string | undefined
  readonly isBase64: boolean
}

const DISPOSITION = /^form-data(?=;|\s*$)/i
const PARAMETER = /;\s*([^\s=;"]+)\s*=\s*(?:"([^"]*)"|([^\s;"]*))/g

function headOf(text: string, at: number): Head {
  let name: string | undefined
  let filename: string | undefined
  let type: string | undefined
  let isBase64 = false
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) throw broken(at, 'the head of a part has a line without a name')
    const value = line.slice(colon + 1).trim()
    switch (line.slice(0, colon).trim().toLowerCase()) {
      case 'content-disposition':
        if (!DISPOSITION.test(value)) throw broken(at, 'a part is no form-data')
        for (const [, key, quoted, plain] of value.matchAll(PARAMETER)) {
          const given = decodedName(quoted ?? plain ?? '')
          if (key!.toLowerCase() === 'name') name ??= given
          else if (key!.toLowerCase() === 'filename') filename ??= given
        }
        break
      case 'content-type':
        type = value
        break
      case 'content-transfer-encoding':
        isBase64 = value.toLowerCase() === 'base64'
    }
  }
  if (name === undefined) throw broken(at, 'a part has no name')
  return { name, filename, type, isBase64 }
}

function decodedName(value: string): string {
  const text = decodeUtf8(bytesFromLatin1(value))
  return text.replaceAll(/%0a/gi, '\n').replaceAll(/%0d/gi, '\r').replaceAll('%22', '"')
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.fromBase64(text)
  } catch {
    return undefined
  }
}

function entryOf({ name, filename, type }: Head, bytes: Uint8Array<ArrayBuffer>): FormEntry {
  if (filename === undefined) return [name, stripBom(decodeUtf8(bytes))]
  const isPrintable = type !== undefined && /^[\x20-\x7e]*$/.test(type)
  return [name, fileOf(blobOf(bytes, type === undefined ? 'text/plain' : isPrintable ? type : ''), filename)]
}

/** The type of a blob that is read from a body of a content type. */
export function blobTypeOf(contentType: string | null): string {
  const type = contentType === null ? null : MIMEType.parse(contentType)
  return type === null ? '' : String(type)
}
