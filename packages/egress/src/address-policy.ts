import { RangeList } from './address-range.ts'
import { BLOCKED_PORTS } from './blocked-ports.ts'
import { parseIpAddress } from './ip-address.ts'

/** What becomes of a connection to an address. */
export type AddressVerdict = 'permitted' | 'address-refused' | 'port-refused'

/** Which addresses functions may connect to. */
export interface AddressPolicy {
  /** @param address as a resolver, a socket or a URL gives it, without brackets; what is no address is refused */
  judge(address: string, port: number): AddressVerdict
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
 * Refuses every address that is not on the public internet or is this machine's, and the ports that the fetch standard blocks; except in the
 * ranges that are opened, unless they are closed as well.
 * @throws CarpoolError `invalid-setting`, naming the range that is none
 */
export function createAddressPolicy({ allow = [], deny = [], isOwn = () => false }: AddressPolicyOptions = {}): AddressPolicy {
  const refused = new RangeList([...REFUSED_IPV4, ...REFUSED_IPV6])
  const allowed = new RangeList(allow)
  const denied = new RangeList(deny)
  return {
    judge(text, port) {
      const address = parseIpAddress(text)
      if (address === undefined || denied.has(address)) return 'address-refused'
      if (allowed.has(address)) return 'permitted'
      if (refused.has(address) || isOwn(address.text)) return 'address-refused'
      return BLOCKED_PORTS.has(port) ? 'port-refused' : 'permitted'
    },
  }
}
