import { networkInterfaces } from 'node:os'
import type { Clock } from '@carpool/core'
import { parseIpAddress } from './ip-address.ts'

/** Addresses come and go while the server runs; to ask takes a few system calls. */
const FRESH_MS = 10_000

/**
 * Knows the addresses of this machine's interfaces, as they were 10 s ago at most: a public one would lead around every firewall to whatever else
 * listens on the machine.
 */
export function createOwnAddresses(clock: Clock, read = readAddresses): (address: string) => boolean {
  let addresses = new Set<string>()
  let readAtMs = Number.NEGATIVE_INFINITY
  return (address) => {
    const nowMs = clock()
    if (nowMs - readAtMs >= FRESH_MS) {
      addresses = new Set(read().map(canonical))
      readAtMs = nowMs
    }
    return addresses.has(canonical(address))
  }
}

function readAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((interfaces = []) => interfaces.map(({ address }) => address))
}

/** An IPv6 address has many spellings; that of a URL is the shortest. */
function canonical(text: string): string {
  const address = parseIpAddress(text)
  if (address === undefined || address.family === 'ipv4') return address?.text ?? text
  return URL.parse(`http://[${address.text}]/`)?.hostname ?? address.text
}
