import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { CarpoolError, type Clock } from '@carpool/core'

export type AddressDecision = 'permitted' | 'address-refused' | 'port-refused'

/** Which addresses functions may connect to. */
export interface AddressPolicy {
  /** @param address as a resolver, a socket or a URL gives it, without brackets; what is no address is refused */
  check(address: string, port: number): AddressDecision
}

export interface AddressPolicyOptions {
  /** Ranges or addresses that are open although they are not on the public internet, with all their ports. Default: none. */
  readonly allow?: readonly string[]
  /** Ranges or addresses that are closed, whatever else says that they are open. Default: none. */
  readonly deny?: readonly string[]
  /** The addresses of this machine, which are closed also if they are on the public internet. Default: not known. */
  readonly isOwn?: (address: string) => boolean
}

/** IPv4 that is not on the public internet, or that gives away the machine. Sources: the IANA special-purpose registry. */
const REFUSED_IPV4 = [
  '0.0.0.0/8', // this network; the local machine on many systems
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; metadata of one cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // host agent of one cloud, in public space
  '169.254.0.0/16', // link-local; metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
]

/** IPv6 outside `2000::/3` is not public; what is refused within it wraps other addresses or leads nowhere. */
const REFUSED_IPV6 = [
  '::/3', // unspecified, loopback, IPv4-compatible, IPv4-translated, local NAT64
  '4000::/2',
  '8000::/1', // unique local, link-local, multicast; metadata of one cloud
  '2001::/23', // protocol assignments, with Teredo
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
]

/**
 * The ports that the fetch standard blocks, because what listens there could take a request for something else: mail, file
 * transfer, remote shells and the like. Source: https://fetch.spec.whatwg.org/#port-blocking
 */
export const BLOCKED_PORTS: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
  115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556,
  563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 10080,
])

/**
 * Refuses addresses that are not public or are this machine's, and the ports that the fetch standard blocks. `allow` opens
 * ranges, and `deny` closes them again.
 * @throws CarpoolError `invalid-setting`, naming the range that is none
 */
export function createAddressPolicy({ allow = [], deny = [], isOwn = () => false }: AddressPolicyOptions = {}): AddressPolicy {
  const refused = new RangeList([...REFUSED_IPV4, ...REFUSED_IPV6])
  const allowed = new RangeList(allow)
  const denied = new RangeList(deny)
  return {
    check(text, port) {
      const address = parseIpAddress(text)
      if (address === undefined || denied.has(address)) return 'address-refused'
      if (allowed.has(address)) return 'permitted'
      if (refused.has(address) || isOwn(address.text)) return 'address-refused'
      return BLOCKED_PORTS.has(port) ? 'port-refused' : 'permitted'
    },
  }
}

/** Addresses come and go while the server runs; to ask takes a few system calls. */
const OWN_FRESH_MS = 10_000

/**
 * Knows the addresses of this machine's interfaces, as they were 10 s ago at most. A public one would lead around every firewall
 * to other servers on the machine.
 */
export function createOwnAddresses(clock: Clock, read = readOwnAddresses): (address: string) => boolean {
  let addresses = new Set<string | undefined>()
  let readAtMs = Number.NEGATIVE_INFINITY
  return (address) => {
    const nowMs = clock()
    if (nowMs - readAtMs >= OWN_FRESH_MS) {
      addresses = new Set(read().map((text) => parseIpAddress(text)?.text))
      readAtMs = nowMs
    }
    return addresses.has(address)
  }
}

function readOwnAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((interfaces = []) => interfaces.map(({ address }) => address))
}

/** An address in the one form in which it is compared. */
interface IpAddress {
  readonly family: 'ipv4' | 'ipv6'
  readonly text: string
}

/** IPv4-mapped (`::ffff:0:0/96`), and NAT64 with the well-known prefix (`64:ff9b::/96`), in the shortest spelling. */
const WRAPPED_IPV4 = /^(?:::ffff:(?<a>[^:]+):(?<b>[^:]+)|64:ff9b::(?:(?:(?<c>[^:]+):)?(?<d>[^:]+))?)$/

/**
 * Reads an address as a resolver or a URL gives it. An IPv4 address inside an IPv6 one is read as IPv4 where the network would
 * unpack it. Undefined: `text` is no address.
 */
function parseIpAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 'ipv4', text }
  if (!isIPv6(text)) return undefined
  // Of the many spellings of an IPv6 address, URLs have the shortest one.
  const shortest = URL.parse(`http://[${text.split('%', 1)[0]}]/`)?.hostname.slice(1, -1)
  if (shortest === undefined) return undefined
  const { groups } = WRAPPED_IPV4.exec(shortest) ?? {}
  if (groups === undefined) return { family: 'ipv6', text: shortest }
  const [high, low] = [groups['a'] ?? groups['c'], groups['b'] ?? groups['d']].map((group = '0') => Number.parseInt(group, 16))
  return { family: 'ipv4', text: [high! >> 8, high! & 255, low! >> 8, low! & 255].join('.') }
}

const WIDEST = { ipv4: 32, ipv6: 128 }

/** Address ranges, to look addresses up in. */
class RangeList {
  // One list for each family: a list finds IPv4 addresses in IPv6 ranges that contain their mapped form, such as ::/3.
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() }

  /** @param ranges in CIDR form, such as `10.1.0.0/16`, or single addresses @throws as {@link parseRange} */
  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const { address, prefixLength } = parseRange(range)
      this.#lists[address.family].addSubnet(address.text, prefixLength, address.family)
    }
  }

  has({ family, text }: IpAddress): boolean {
    return this.#lists[family].check(text, family)
  }
}

/** @throws CarpoolError `invalid-setting`, naming the range */
export function parseRange(range: string): { address: IpAddress; prefixLength: number } {
  const [, text = '', digits] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(range) ?? []
  const address = parseIpAddress(text)
  // An IPv4 address in IPv6 form is compared as IPv4, so a prefix that counts the bits of IPv6 would mean something else.
  const isPlain = address !== undefined && isIPv4(text) === (address.family === 'ipv4')
  const prefixLength = digits === undefined && isPlain ? WIDEST[address.family] : Number(digits)
  if (isPlain && prefixLength <= WIDEST[address.family]) return { address, prefixLength }
  throw new CarpoolError(
    'invalid-setting',
    `${JSON.stringify(range)} is no address range in CIDR form, such as "10.1.0.0/16" or "fd00::/8", and no address.`,
  )
}
