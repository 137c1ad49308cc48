import { BlockList, isIPv4 } from 'node:net'
import { CarpoolError } from '@carpool/core'
import { parseIpAddress, type IpAddress } from './ip-address.ts'

/** Address ranges, to look addresses up in. */
export class RangeList {
  // One list for each family: a list finds IPv4 addresses in IPv6 ranges that happen to contain their mapped form, such as ::/3.
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() }

  /**
   * @param ranges in CIDR form, such as `10.1.0.0/16`, or single addresses
   * @throws CarpoolError `invalid-setting`, naming the range
   */
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

const WIDEST = { ipv4: 32, ipv6: 128 }

function parseRange(range: string): { address: IpAddress; prefixLength: number } {
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
