import { isIPv4, isIPv6 } from 'node:net'

/** An address in the form in which ranges are compared. */
export interface IpAddress {
  readonly family: 'ipv4' | 'ipv6'
  readonly text: string
}

/**
 * Reads an address as a resolver or a URL gives it. An IPv4 address inside an IPv6 one, where the network would unpack it
 * (IPv4-mapped, and NAT64 with the well-known prefix), is read as that IPv4 address. Undefined: `text` is no address.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 'ipv4', text }
  if (!isIPv6(text)) return undefined
  const withoutZone = text.split('%', 1)[0] ?? ''
  const groups = ipv6Groups(withoutZone)
  const prefix = groups.slice(0, 6).join()
  if (prefix === MAPPED_PREFIX || prefix === NAT64_PREFIX)
    return { family: 'ipv4', text: dottedQuad(groups[6] ?? 0, groups[7] ?? 0) }
  return { family: 'ipv6', text: withoutZone }
}

/** `::ffff:0:0/96` */
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0xffff].join()
/** `64:ff9b::/96` */
const NAT64_PREFIX = [0x64, 0xff9b, 0, 0, 0, 0].join()

/** The eight groups of a valid IPv6 address. */
function ipv6Groups(text: string): number[] {
  const [head = [], tail] = text.split('::').map(groupsOf)
  if (tail === undefined) return head
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail]
}

function groupsOf(part: string): number[] {
  if (part === '') return []
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

function dottedQuad(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
