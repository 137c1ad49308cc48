import { Buffer } from '../buffer-global.ts'

/** A certificate as `getPeerCertificate` of Node.js has it, but for its key. */
export interface PeerCertificate {
  readonly subject: Readonly<Record<string, string | string[]>>
  readonly issuer: Readonly<Record<string, string | string[]>>
  readonly subjectaltname?: string
  readonly ca: boolean
  readonly valid_from: string
  readonly valid_to: string
  readonly fingerprint: string
  readonly fingerprint256: string
  readonly fingerprint512: string
  readonly serialNumber: string
  readonly raw: Buffer
}

declare const require: (name: string) => Pick<typeof import('node:crypto'), 'createHash'>

interface Element {
  readonly tag: number
  readonly content: Buffer
}

/** Names of attributes, as OpenSSL shortens them, by object identifier in hex. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  '550403': 'CN',
  '550404': 'SN',
  '550405': 'serialNumber',
  '550406': 'C',
  '550407': 'L',
  '550408': 'ST',
  '55040a': 'O',
  '55040b': 'OU',
  '2a864886f70d010901': 'emailAddress',
  '0992268993f22c640119': 'DC',
}
const [ALT_NAMES, BASIC_CONSTRAINTS] = ['551d11', '551d13']
const [SEQUENCE, VERSION, EXTENSIONS, BMP_STRING] = [0x30, 0xa0, 0xa3, 0x1e]
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Reads a certificate in DER form (RFC 5280). @throws RangeError if it is none */
export function parseCertificate(raw: Buffer): PeerCertificate {
  const [whole] = elementsOf(raw)
  const fields = elementsOf(elementsOf(whole!.content)[0]!.content)
  if (fields[0]!.tag === VERSION) fields.shift()
  const [serial, , issuer, validity, subject] = fields as [Element, Element, Element, Element, Element]
  const [from, to] = elementsOf(validity.content) as [Element, Element]
  const extensions = extensionsOf(fields.find(({ tag }) => tag === EXTENSIONS))
  const names = extensions.get(ALT_NAMES!)
  const constraints = extensions.get(BASIC_CONSTRAINTS!)
  // Few ask for certificates, and it is a library of the runtime.
  const { createHash } = require('node:crypto')
  const digest = (name: string): string =>
    createHash(name)
      .update(raw)
      .digest('hex')
      .toUpperCase()
      .replaceAll(/..(?!$)/g, '$&:')
  return {
    subject: nameOf(subject),
    issuer: nameOf(issuer),
    ...(names !== undefined && { subjectaltname: elementsOf(elementsOf(names)[0]!.content).map(altNameOf).join(', ') }),
    ca: constraints !== undefined && elementsOf(elementsOf(constraints)[0]!.content)[0]?.content[0] === 0xff,
    valid_from: timeOf(from),
    valid_to: timeOf(to),
    fingerprint: digest('sha1'),
    fingerprint256: digest('sha256'),
    fingerprint512: digest('sha512'),
    serialNumber: serial.content
      .toString('hex')
      .replace(/^00(?=.)/, '')
      .toUpperCase(),
    raw,
  }
}

/** The elements that stand one behind the other in DER. */
function elementsOf(bytes: Buffer): Element[] {
  const elements: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes.readUInt8(at)
    const first = bytes.readUInt8(at + 1)
    const sizeBytes = first < 0x80 ? 0 : first & 0x7f
    const size = sizeBytes === 0 ? first : bytes.readUIntBE(at + 2, sizeBytes)
    const start = at + 2 + sizeBytes
    if (start + size > bytes.length) throw new RangeError('The certificate ends early.')
    elements.push({ tag, content: bytes.subarray(start, start + size) })
    at = start + size
  }
  return elements
}

function nameOf({ content }: Element): Record<string, string | string[]> {
  const name = Object.create(null) as Record<string, string | string[]>
  for (const set of elementsOf(content)) {
    for (const { content: pair } of elementsOf(set.content)) {
      const [type, value] = elementsOf(pair) as [Element, Element]
      const key = ATTRIBUTES[type.content.toString('hex')] ?? oidOf(type.content)
      const text = value.tag === BMP_STRING ? Buffer.from(value.content).swap16().toString('utf16le') : value.content.toString()
      const before = name[key]
      name[key] = before === undefined ? text : [...(typeof before === 'string' ? [before] : before), text]
    }
  }
  return name
}

function extensionsOf(element: Element | undefined): Map<string, Buffer> {
  const list = element === undefined ? [] : elementsOf(elementsOf(element.content)[0]!.content)
  return new Map(
    list
      .filter(({ tag }) => tag === SEQUENCE)
      .map(({ content }) => {
        const parts = elementsOf(content)
        return [parts[0]!.content.toString('hex'), parts.at(-1)!.content] as const
      }),
  )
}

/** As Node.js writes one: what could be taken for two is quoted. */
function altNameOf({ tag, content }: Element): string {
  const text = content.toString('latin1')
  const quoted = /[",\\\n\r\t]/.test(text) ? JSON.stringify(text) : text
  switch (tag) {
    case 0x81:
      return `email:${quoted}`
    case 0x82:
      return `DNS:${quoted}`
    case 0x86:
      return `URI:${quoted}`
    case 0x87:
      return `IP Address:${content.length === 4 ? content.join('.') : ipv6Of(content)}`
    default:
      return 'othername:<unsupported>'
  }
}

function ipv6Of(bytes: Buffer): string {
  return Array.from({ length: bytes.length / 2 }, (_, index) =>
    bytes
      .readUInt16BE(index * 2)
      .toString(16)
      .toUpperCase(),
  ).join(':')
}

function oidOf(bytes: Buffer): string {
  const parts = [Math.min(2, Math.floor(bytes[0]! / 40)), bytes[0]! - Math.min(2, Math.floor(bytes[0]! / 40)) * 40]
  let value = 0
  for (const byte of bytes.subarray(1)) {
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) {
      parts.push(value)
      value = 0
    }
  }
  return parts.join('.')
}

/** UTCTime has two digits for the year, which are of 1950 to 2049. */
function timeOf({ tag, content }: Element): string {
  const text = content.toString('latin1')
  const digits = tag === 0x17 ? (Number(text.slice(0, 2)) < 50 ? '20' : '19') + text : text
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)/.exec(digits) ?? []
  return `${MONTHS[Number(month) - 1]} ${String(Number(day)).padStart(2)} ${hour}:${minute}:${second} ${year} GMT`
}
