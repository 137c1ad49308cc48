import { BlockList, isIPv4 } from 'node:net'
import { CarpoolError } from '@carpool/core'
import { parseIpAddress, type IpAddress } from './ip-address.ts'

/** Which addresses functions may connect to. */
export interface AddressPolicy {
  /** @param address as a resolver or a URL gives it, without brackets; what is no address is refused */
  permits(address: string): boolean
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

/** IPv6 outside `2000::/3` is not on the public internet; what is refused within it wraps other addresses or leads nowhere. */
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
 * Refuses every address that is not on the public internet, except in the ranges that are opened.
 * @param allow ranges in CIDR form, such as `10.1.0.0/16`
 * @throws CarpoolError `invalid-setting`, naming the range
 */
export function createAddressPolicy(allow: readonly string[]): AddressPolicy {
  const refused = new RangeList([...REFUSED_IPV4, ...REFUSED_IPV6])
  const allowed = new RangeList(allow)
  return {
    permits(text) {
      const address = parseIpAddress(text)
      return address !== undefined && (!refused.has(address) || allowed.has(address))
    },
  }
}

class RangeList {
  // One list for each family: a list finds IPv4 addresses in IPv6 ranges that happen to contain their mapped form, such as ::/3.
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() }

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

function parseRange(range: string): { address: IpAddress; prefixLength: number } {
  const [, text = '', digits = ''] = /^([0-9a-fA-F.:]+)\/(\d{1,3})$/.exec(range) ?? []
  const address = parseIpAddress(text)
  const prefixLength = Number(digits)
  const widest = { ipv4: 32, ipv6: 128 }
  // An IPv4 address in IPv6 form is compared as IPv4, so a prefix that counts the bits of IPv6 would mean something else.
  const isPlain = address !== undefined && isIPv4(text) === (address.family === 'ipv4')
  if (isPlain && prefixLength <= widest[address.family]) return { address, prefixLength }
  throw new CarpoolError(
    'invalid-setting',
    `${JSON.stringify(range)} is no address range in CIDR form, such as "10.1.0.0/16" or "fd00::/8".`,
  )
}
