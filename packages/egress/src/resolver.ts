import type { LookupAddress } from 'node:dns'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { monotonicClock } from '@carpool/core'
import { PatientResolver } from './patient-resolver.ts'

/** Gives every address of a host name. @throws Error with the code `ENOTFOUND` or `EAI_AGAIN` */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export interface ResolverOptions {
  /** DNS servers, as `address` or `address:port`. Default: those of the system. */
  readonly servers?: readonly string[]
  readonly hostsPath?: string
  readonly configPath?: string
  /** How long a DNS server is waited for, in ms: it may take so long at least. It is asked again after that. Default: 1500. */
  readonly timeoutMs?: number
}

/** How long addresses of one family wait for those of the other: the resolution delay of RFC 8305, section 3. */
const RESOLUTION_DELAY_MS = 50
const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/**
 * Resolves host names without a thread for each. `getaddrinfo`, the default of Node.js, holds one of a few threads until a name
 * server answers, so names of a dead server would shut out all others. What `getaddrinfo` uses besides DNS is done here: the
 * hosts file, the search list, and `localhost` (RFC 6761).
 */
export function createResolver({
  servers,
  hostsPath = '/etc/hosts',
  configPath = '/etc/resolv.conf',
  timeoutMs = 1_500,
}: ResolverOptions = {}): Resolve {
  const hosts = createFileView(hostsPath, parseHosts)
  // The servers may have changed with the file.
  const config = createFileView(configPath, (text) => ({
    rule: parseSearchRule(text),
    resolver: new PatientResolver({ timeoutMs, servers }),
  }))

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

async function query(resolver: PatientResolver, name: string): Promise<LookupAddress[] | 'unknown' | 'unresolved'> {
  const [first, second] = ([4, 6] as const).map((family) => queryFamily(resolver, name, family))
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
  resolver: PatientResolver,
  name: string,
  family: 4 | 6,
): Promise<LookupAddress[] | 'unknown' | 'unresolved'> {
  try {
    return await resolver.resolve(name, family)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    return code === 'ENOTFOUND' || code === 'ENODATA' ? 'unknown' : 'unresolved'
  }
}

/** How `resolv.conf` completes names. */
interface SearchRule {
  readonly domains: readonly string[]
  /** Dots from which a name is first looked up as it is. */
  readonly ndots: number
}

/** As many as the C library takes. */
const MAX_DOMAINS = 6
const MAX_NDOTS = 15

/** Reads the parts of a `resolv.conf` that the resolver of Node.js ignores. Of several lines for one thing, the last counts. */
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

const FRESH_MS = 5_000

/** Reads and parses a file of the system; the result is at most 5 s old. A file that cannot be read counts as empty. */
function createFileView<T>(path: string, parse: (text: string) => T): () => T {
  let view = parse('')
  let version = ''
  let lookedAtMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = monotonicClock()
    if (nowMs - lookedAtMs < FRESH_MS) return view
    lookedAtMs = nowMs
    const seen = versionOf(path)
    if (seen === version) return view
    version = seen
    view = parse(seen === '' ? '' : textOf(path))
    return view
  }
}

function versionOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
