import { isIP } from 'node:net'
import { CarpoolError } from '@carpool/core'

/** Entries that a function's list may have. */
const MAX_ENTRIES = 100
const MAX_ENTRY_LENGTH = 300

/**
 * Checks a function's list of hosts that it may fetch from, and normalises each entry as URLs do: lower case, punycode, addresses
 * in their usual form. An entry is a host name (`api.example.com`), a wildcard (`*.example.com`: any name below, not the name
 * itself), or an address (`[::1]`). Without a port it is for all ports.
 * @throws CarpoolError `invalid-config`, naming the entry
 */
export function checkHostList(entries: readonly string[]): string[] {
  if (entries.length > MAX_ENTRIES) {
    throw new CarpoolError('invalid-config', `egress has ${entries.length} entries; the limit is ${MAX_ENTRIES}.`)
  }
  return entries.map((entry) => {
    const written = entry.length <= MAX_ENTRY_LENGTH ? normalise(entry) : undefined
    if (written !== undefined) return written
    const shown = entry.length > 80 ? `${entry.slice(0, 80)}…` : entry
    throw new CarpoolError(
      'invalid-config',
      `egress holds ${JSON.stringify(shown)}; an entry is a host name such as "api.example.com" or "*.example.com", with a port if need be (":443").`,
    )
  })
}

/** Whether a list, as {@link checkHostList} writes it, has the host of a URL. */
export function isListed(list: readonly string[], { hostname, port, protocol }: URL): boolean {
  return hasHost(list, hostname, port === '' ? (DEFAULT_PORTS[protocol] ?? '') : port)
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'ws:': '80', 'https:': '443', 'wss:': '443' }

/** Whether a list has a host with a port. @param hostname as URLs have it, addresses of IPv6 in brackets */
export function hasHost(list: readonly string[], hostname: string, usedPort: string): boolean {
  // A dot at the end makes no other name of it.
  const host = hostname.replace(/\.$/, '')
  return list.some((entry) => {
    const [, pattern = '', wantedPort] = PARTS.exec(entry) ?? []
    if (wantedPort !== undefined && wantedPort !== usedPort) return false
    return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) && host.length >= pattern.length : host === pattern
  })
}

/** A host and its port; colons within brackets are of an address. */
const PARTS = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/
/** Begins another part of a URL, or is left out by the URL parser. */
const NO_HOST = /[\s/?#@\\%*]|[\p{Cc}]/u

function normalise(entry: string): string | undefined {
  const [, pattern, port] = PARTS.exec(entry) ?? []
  if (pattern === undefined || (port !== undefined && (Number(port) < 1 || Number(port) > 65_535))) return undefined
  const isSuffix = pattern.startsWith('*.')
  const name = isSuffix ? pattern.slice(2) : pattern
  if (name === '' || NO_HOST.test(name)) return undefined
  const host = URL.parse(`http://${name}/`)?.hostname.replace(/\.$/, '')
  if (host === undefined || host === '') return undefined
  if (isSuffix && (isIP(host) !== 0 || host.startsWith('['))) return undefined
  return `${isSuffix ? '*.' : ''}${host}${port === undefined ? '' : `:${Number(port)}`}`
}
