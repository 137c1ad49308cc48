import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'

/** What `resolv.conf` says of names that are not complete. */
export interface SearchRule {
  readonly domains: readonly string[]
  /** Dots from which a name is first looked up as it is. */
  readonly ndots: number
}

/** As many as the C library takes. */
const MAX_DOMAINS = 6
const MAX_NDOTS = 15

/** Reads the parts of a `resolv.conf` that the resolver of Node.js does not go by. Of several lines that set one thing, the last counts. */
export function parseSearchRule(text: string): SearchRule {
  let domains: string[] = []
  let ndots = 1
  for (const line of text.split('\n')) {
    const [key, ...values] = line.split(/[#;]/, 1)[0]?.trim().split(/\s+/) ?? []
    if (key === 'search' || key === 'domain') domains = values.slice(0, MAX_DOMAINS).map((domain) => domain.replace(/\.$/, ''))
    if (key !== 'options') continue
    for (const option of values) {
      const digits = /^ndots:(\d+)$/.exec(option)?.[1]
      if (digits !== undefined) ndots = Math.min(Number(digits), MAX_NDOTS)
    }
  }
  return { domains: domains.filter((domain) => domain !== ''), ndots }
}

/** The names to look up for one that is asked for, in order. */
export function searchNames(hostname: string, { domains, ndots }: SearchRule): string[] {
  if (hostname.endsWith('.')) return [hostname.slice(0, -1)]
  const isFirst = hostname.split('.').length - 1 >= ndots
  const searched = domains.map((domain) => `${hostname}.${domain}`)
  return isFirst ? [hostname, ...searched] : [...searched, hostname]
}

/** Reads a `hosts` file: the addresses of each name, in lower case. */
export function parseHosts(text: string): ReadonlyMap<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.split('#', 1)[0]?.trim().split(/\s+/) ?? []
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names.map((name) => name.toLowerCase())) hosts.set(name, [...(hosts.get(name) ?? []), { address, family }])
  }
  return hosts
}
