import { promises as dns, type LookupAddress } from 'node:dns'
import { setTimeout as delay } from 'node:timers/promises'
import { monotonicClock } from '@carpool/core'
import { createFileView } from './file-view.ts'
import { parseHosts, parseSearchRule, searchNames } from './resolver-files.ts'

/** Gives every address of a host name. @throws Error with the code `ENOTFOUND` or `EAI_AGAIN` */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export interface ResolverOptions {
  /** DNS servers, as `address` or `address:port`. Default: those of the system. */
  readonly servers?: readonly string[]
  readonly hostsPath?: string
  readonly configPath?: string
  /** Longest wait for a DNS server at the first try; it is asked twice. Default: 1500. */
  readonly timeoutMs?: number
}

const TRIES = 2
/** How long addresses of one family wait for those of the other: the resolution delay of RFC 8305, section 3. */
const RESOLUTION_DELAY_MS = 50
const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/**
 * Resolves host names without a thread for each. The system's `getaddrinfo`, which Node.js uses otherwise, holds one of the few threads of the
 * process until a name server answers, so names of a server that never does would shut out all others. What the system goes by besides DNS is
 * done here: the hosts file, the search list, and `localhost`, which RFC 6761 keeps on the machine.
 */
export function createResolver({
  servers,
  hostsPath = '/etc/hosts',
  configPath = '/etc/resolv.conf',
  timeoutMs = 1_500,
}: ResolverOptions = {}): Resolve {
  const hosts = createFileView(hostsPath, parseHosts, monotonicClock)
  // The servers may have changed with the file.
  const config = createFileView(
    configPath,
    (text) => ({ rule: parseSearchRule(text), resolver: newResolver(timeoutMs, servers) }),
    monotonicClock,
  )

  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    const known = hosts().get(name)
    if (known !== undefined) return known
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK
    const { rule, resolver } = config()
    let isUnknown = true
    for (const candidate of searchNames(hostname, rule)) {
      const found = await query(resolver, candidate)
      if (typeof found !== 'string') return found
      isUnknown &&= found === 'unknown'
    }
    throw Object.assign(new Error('not resolved'), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' })
  }
}

function newResolver(timeoutMs: number, servers: readonly string[] | undefined): dns.Resolver {
  const resolver = new dns.Resolver({ timeout: timeoutMs, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  return resolver
}

async function query(resolver: dns.Resolver, name: string): Promise<LookupAddress[] | 'unknown' | 'unresolved'> {
  const [first, second] = [4, 6].map((family) => queryFamily(resolver, name, family))
  if (first === undefined || second === undefined) return 'unknown'
  const four = await first
  if (typeof four === 'string') {
    const six = await second
    return six === 'unknown' ? four : six
  }
  const six = await Promise.race([second, delay(RESOLUTION_DELAY_MS, 'unresolved' as const)])
  return typeof six === 'string' ? four : [...four, ...six]
}

async function queryFamily(
  resolver: dns.Resolver,
  name: string,
  family: number,
): Promise<LookupAddress[] | 'unknown' | 'unresolved'> {
  try {
    const addresses = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name))
    return addresses.map((address) => ({ address, family }))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    return code === 'ENOTFOUND' || code === 'ENODATA' ? 'unknown' : 'unresolved'
  }
}
