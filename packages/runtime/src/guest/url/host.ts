import { domainToAscii } from './domain.ts'
import { C0_SET, percentDecode, percentEncode } from './percent.ts'

const FORBIDDEN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/
const FORBIDDEN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/

/**
 * Parses the host of a URL and gives it in serialised form.
 * @param opaque whether the URL's scheme is not a special one, so that the host is kept as it is
 * @returns undefined if it is not valid
 */
export function parseHost(text: string, opaque: boolean): string | undefined {
  if (text.startsWith('[')) {
    const address = text.endsWith(']') ? parseIpv6(text.slice(1, -1)) : undefined
    return address === undefined ? undefined : `[${serializeIpv6(address)}]`
  }
  if (opaque) return FORBIDDEN_HOST.test(text) ? undefined : percentEncode(text, C0_SET)
  const domain = domainToAscii(percentDecode(text))
  if (domain === undefined || domain === '' || FORBIDDEN_DOMAIN.test(domain)) return undefined
  return endsInNumber(domain) ? parseIpv4(domain) : domain
}

function endsInNumber(domain: string): boolean {
  const parts = domain.split('.')
  if (parts.at(-1) === '') {
    if (parts.length === 1) return false
    parts.pop()
  }
  const last = parts.at(-1)!
  return /^\d+$/.test(last) || /^0x[\da-f]*$/i.test(last)
}

function parseIpv4(domain: string): string | undefined {
  const parts = domain.split('.')
  if (parts.at(-1) === '' && parts.length > 1) parts.pop()
  if (parts.length > 4) return undefined
  const numbers = parts.map((part) => parseIpv4Number(part))
  let address = 0
  for (const [index, number] of numbers.entries()) {
    const isLast = index === numbers.length - 1
    if (Number.isNaN(number) || number >= (isLast ? 256 ** (5 - numbers.length) : 256)) return undefined
    address += isLast ? number : number * 256 ** (3 - index)
  }
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}

function parseIpv4Number(part: string): number {
  if (part === '') return Number.NaN
  if (/^0x/i.test(part))
    return part.length === 2 ? 0 : /^0x[\da-f]+$/i.test(part) ? Number.parseInt(part.slice(2), 16) : Number.NaN
  if (part.length > 1 && part.startsWith('0')) return /^[0-7]+$/.test(part) ? Number.parseInt(part, 8) : Number.NaN
  return /^\d+$/.test(part) ? Number.parseInt(part, 10) : Number.NaN
}

function parseIpv6(text: string): number[] | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = parsePieces(halves[0]!, halves.length === 1)
  const tail = halves.length === 2 ? parsePieces(halves[1]!, true) : []
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  return [...head, ...Array<number>(missing).fill(0), ...tail]
}

/** @param isEnd whether the pieces end the address, where an IPv4 address may stand */
function parsePieces(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const pieces: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (isEnd && index === parts.length - 1 && part.includes('.')) {
      const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(part)
      const numbers = match?.slice(1) ?? []
      const valid = numbers.length === 4 && numbers.every((number) => +number < 256 && (number.length === 1 || number[0] !== '0'))
      if (!valid) return undefined
      pieces.push(+numbers[0]! * 256 + +numbers[1]!, +numbers[2]! * 256 + +numbers[3]!)
    } else if (/^[\da-f]{1,4}$/i.test(part)) {
      pieces.push(Number.parseInt(part, 16))
    } else {
      return undefined
    }
  }
  return pieces
}

function serializeIpv6(pieces: readonly number[]): string {
  let best = -1
  let bestLength = 1
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && pieces[end] === 0) end++
    if (end - start > bestLength) {
      best = start
      bestLength = end - start
    }
  }
  const hex = (from: number, to: number): string =>
    pieces
      .slice(from, to)
      .map((piece) => piece.toString(16))
      .join(':')
  return best === -1 ? hex(0, 8) : `${hex(0, best)}::${hex(best + bestLength, 8)}`
}
