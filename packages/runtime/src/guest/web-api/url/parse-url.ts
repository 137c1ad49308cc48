import {
  arrayJoin,
  type List,
  regExpExec,
  SafeList,
  SafeMap,
  stringCharAt,
  stringCharCodeAt,
  stringEndsWith,
  stringIndexOf,
  stringLastIndexOf,
  stringSlice,
  stringStartsWith,
  stringToLowerCase,
} from '../../language/primordials.ts'
import { matches, removeMatches } from '../../language/values.ts'
import { parseHost } from './parse-host.ts'
import { C0_SET, FRAGMENT_SET, PATH_SET, percentEncode, QUERY_SET, SPECIAL_QUERY_SET, USERINFO_SET } from './percent-encoding.ts'

/** A URL record of the URL standard, its host in serialised form. */
export interface UrlRecord {
  scheme: string
  username: string
  password: string
  host: string | null
  /** Empty: none, or the default one of the scheme. */
  port: string
  path: List<string>
  /** Set instead of `path` for a URL such as `mailto:a@b`. */
  opaquePath: string | null
  query: string | null
  fragment: string | null
}

const DEFAULT_PORTS = new SafeMap<string, string>()
DEFAULT_PORTS.set('http', '80')
DEFAULT_PORTS.set('https', '443')
DEFAULT_PORTS.set('ws', '80')
DEFAULT_PORTS.set('wss', '443')
DEFAULT_PORTS.set('ftp', '21')
DEFAULT_PORTS.set('file', '')

const BREAKS = /[\t\n\r]+/g
const SCHEME = /^([a-z][a-z\d+.-]*):/i
const DIGITS = /^\d*$/
const DRIVE = /^[a-z][:|]$/i
const NORMALIZED_DRIVE = /^[a-z]:$/i
const DRIVE_START = /^[a-z][:|](?:[/\\]|$)/i
const ONE_DOT = /^(?:\.|%2e)$/i
const TWO_DOTS = /^(?:\.|%2e){2}$/i

export function isSpecial(scheme: string): boolean {
  return DEFAULT_PORTS.has(scheme)
}

/**
 * The basic URL parser of the URL standard, working on segments in place of single characters: a "#" always begins the fragment
 * and the first "?" before it the query, so both are cut off first.
 * @returns undefined if the input is not valid
 */
export function parseUrl(input: string, base?: UrlRecord): UrlRecord | undefined {
  let text = removeMatches(trim(input), BREAKS)
  let fragment: string | null = null
  const hash = stringIndexOf(text, '#')
  if (hash !== -1) {
    fragment = stringSlice(text, hash + 1)
    text = stringSlice(text, 0, hash)
  }
  let query: string | null = null
  const mark = stringIndexOf(text, '?')
  if (mark !== -1) {
    query = stringSlice(text, mark + 1)
    text = stringSlice(text, 0, mark)
  }
  const match = regExpExec(SCHEME, text)
  const url =
    match === null
      ? parseRelative(text, query !== null, fragment !== null, base)
      : parseAbsolute(stringToLowerCase(match[1]!), stringSlice(text, match[0].length), query !== null || fragment !== null, base)
  if (url === undefined) return undefined
  if (query !== null) url.query = encodeQuery(query, url.scheme)
  if (fragment !== null) url.fragment = percentEncode(fragment, FRAGMENT_SET)
  return url
}

export function encodeQuery(query: string, scheme: string): string {
  return percentEncode(query, isSpecial(scheme) ? SPECIAL_QUERY_SET : QUERY_SET)
}

function emptyUrl(scheme: string): UrlRecord {
  const path = new SafeList<string>()
  return { scheme, username: '', password: '', host: null, port: '', path, opaquePath: null, query: null, fragment: null }
}

function copyPath(path: List<string>): List<string> {
  const copy = new SafeList<string>()
  for (let index = 0; index < path.length; index++) copy[index] = path[index]!
  return copy
}

/** Without control characters and spaces at its ends. */
function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && stringCharCodeAt(text, start) <= 0x20) start++
  while (end > start && stringCharCodeAt(text, end - 1) <= 0x20) end--
  return stringSlice(text, start, end)
}

function withoutSlashes(text: string): string {
  let start = 0
  while (isSlash(stringCharAt(text, start), true)) start++
  return stringSlice(text, start)
}

/** Where the next slash is; the length of the text if there is none. */
function findSlash(text: string, special: boolean, from = 0): number {
  let index = from
  for (; index < text.length; index++) {
    const unit = stringCharCodeAt(text, index)
    if (unit === 0x2f || (special && unit === 0x5c)) break
  }
  return index
}

function isSlash(character: string, special: boolean): boolean {
  return character === '/' || (special && character === '\\')
}

function parseAbsolute(scheme: string, rest: string, more: boolean, base: UrlRecord | undefined): UrlRecord | undefined {
  const url = emptyUrl(scheme)
  if (scheme === 'file') return parseFile(url, rest, false, base?.scheme === 'file' ? base : undefined)
  if (isSpecial(scheme)) {
    if (base?.scheme === scheme && !stringStartsWith(rest, '//')) return parseAgainst(url, rest, false, base)
    return parseAuthority(url, withoutSlashes(rest))
  }
  if (stringStartsWith(rest, '//')) return parseAuthority(url, stringSlice(rest, 2))
  if (stringStartsWith(rest, '/')) {
    parsePath(url, stringSlice(rest, 1))
    return url
  }
  // A space at the end would be lost when the URL is parsed again, if nothing followed it.
  url.opaquePath = percentEncode(more && stringEndsWith(rest, ' ') ? `${stringSlice(rest, 0, -1)}%20` : rest, C0_SET)
  return url
}

function parseRelative(
  text: string,
  hasQuery: boolean,
  hasFragment: boolean,
  base: UrlRecord | undefined,
): UrlRecord | undefined {
  if (base === undefined) return undefined
  if (base.opaquePath !== null) {
    return text === '' && !hasQuery && hasFragment ? { ...base, path: new SafeList() } : undefined
  }
  const url = emptyUrl(base.scheme)
  return base.scheme === 'file' ? parseFile(url, text, hasQuery, base) : parseAgainst(url, text, hasQuery, base)
}

/** The "relative" and "relative slash" states. */
function parseAgainst(url: UrlRecord, text: string, hasQuery: boolean, base: UrlRecord): UrlRecord | undefined {
  const special = isSpecial(url.scheme)
  const startsWithSlash = isSlash(stringCharAt(text, 0), special)
  if (startsWithSlash && isSlash(stringCharAt(text, 1), special)) {
    return parseAuthority(url, special ? withoutSlashes(text) : stringSlice(text, 2))
  }
  url.username = base.username
  url.password = base.password
  url.host = base.host
  url.port = base.port
  if (startsWithSlash) {
    parsePath(url, stringSlice(text, 1))
    return url
  }
  url.path = copyPath(base.path)
  if (text !== '') {
    shortenPath(url)
    parsePath(url, text)
  } else if (!hasQuery) {
    url.query = base.query
  }
  return url
}

/** The "file", "file slash" and "file host" states. */
function parseFile(url: UrlRecord, text: string, hasQuery: boolean, base: UrlRecord | undefined): UrlRecord | undefined {
  url.host = ''
  if (isSlash(stringCharAt(text, 0), true)) {
    if (isSlash(stringCharAt(text, 1), true)) return parseFileHost(url, stringSlice(text, 2))
    const rest = stringSlice(text, 1)
    if (base !== undefined) {
      url.host = base.host
      const drive = base.path[0]
      if (!startsWithDrive(rest) && drive !== undefined && isNormalizedDrive(drive)) url.path[0] = drive
    }
    parsePath(url, rest)
    return url
  }
  if (base === undefined) {
    parsePath(url, text)
    return url
  }
  url.host = base.host
  url.path = copyPath(base.path)
  if (text === '') {
    if (!hasQuery) url.query = base.query
    return url
  }
  if (startsWithDrive(text)) url.path.length = 0
  else shortenPath(url)
  parsePath(url, text)
  return url
}

function parseFileHost(url: UrlRecord, text: string): UrlRecord | undefined {
  const end = findSlash(text, true)
  const name = stringSlice(text, 0, end)
  if (matches(name, DRIVE)) {
    parsePath(url, text)
    return url
  }
  if (name !== '') {
    const host = parseHost(name, false)
    if (host === undefined) return undefined
    url.host = host === 'localhost' ? '' : host
  }
  parsePathStart(url, stringSlice(text, end))
  return url
}

function parseAuthority(url: UrlRecord, text: string): UrlRecord | undefined {
  const special = isSpecial(url.scheme)
  const end = findSlash(text, special)
  const authority = stringSlice(text, 0, end)
  const at = stringLastIndexOf(authority, '@')
  const hostPort = stringSlice(authority, at + 1)
  if (at !== -1) {
    if (hostPort === '') return undefined
    const credentials = stringSlice(authority, 0, at)
    const colon = stringIndexOf(credentials, ':')
    url.username = percentEncode(colon === -1 ? credentials : stringSlice(credentials, 0, colon), USERINFO_SET)
    url.password = colon === -1 ? '' : percentEncode(stringSlice(credentials, colon + 1), USERINFO_SET)
  }
  const { name, port } = splitPort(hostPort)
  if (name === '' && (special || port !== null || at !== -1)) return undefined
  const host = name === '' ? '' : parseHost(name, !special)
  if (host === undefined) return undefined
  url.host = host
  if (port !== null) {
    if (!matches(port, DIGITS) || +port > 65_535) return undefined
    url.port = normalizePort(port, url.scheme)
  }
  parsePathStart(url, stringSlice(text, end))
  return url
}

/** Splits `host:port` at the first colon outside brackets; `port` is null if there is none. */
export function splitPort(text: string): { name: string; port: string | null } {
  let inBrackets = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '[') inBrackets = true
    else if (character === ']') inBrackets = false
    else if (character === ':' && !inBrackets) return { name: stringSlice(text, 0, index), port: stringSlice(text, index + 1) }
  }
  return { name: text, port: null }
}

/** A port of digits without leading zeros; empty if it is the default one. */
export function normalizePort(digits: string, scheme: string): string {
  if (digits === '') return ''
  const port = `${+digits}`
  return DEFAULT_PORTS.get(scheme) === port ? '' : port
}

/** The "path start" state: `text` is what follows the host. */
export function parsePathStart(url: UrlRecord, text: string): void {
  const special = isSpecial(url.scheme)
  if (special || text !== '') parsePath(url, isSlash(stringCharAt(text, 0), special) ? stringSlice(text, 1) : text)
}

/** The "path" state: adds the segments of `text`, which has no slash in front. */
export function parsePath(url: UrlRecord, text: string): void {
  const { path } = url
  const special = isSpecial(url.scheme)
  for (let start = 0; start <= text.length; ) {
    const end = findSlash(text, special, start)
    const isLast = end === text.length
    let segment = stringSlice(text, start, end)
    start = end + 1
    if (matches(segment, TWO_DOTS)) {
      shortenPath(url)
      if (isLast) path[path.length] = ''
    } else if (matches(segment, ONE_DOT)) {
      if (isLast) path[path.length] = ''
    } else {
      if (url.scheme === 'file' && path.length === 0 && matches(segment, DRIVE)) segment = `${stringCharAt(segment, 0)}:`
      path[path.length] = percentEncode(segment, PATH_SET)
    }
  }
}

function shortenPath({ scheme, path }: UrlRecord): void {
  if (path.length === 0 || (scheme === 'file' && path.length === 1 && isNormalizedDrive(path[0]!))) return
  path.length--
}

function isNormalizedDrive(segment: string): boolean {
  return matches(segment, NORMALIZED_DRIVE)
}

function startsWithDrive(text: string): boolean {
  return matches(text, DRIVE_START)
}

export function serializePath(url: UrlRecord): string {
  return url.opaquePath ?? (url.path.length === 0 ? '' : `/${arrayJoin(url.path, '/')}`)
}

export function serializeUrl(url: UrlRecord): string {
  let text = `${url.scheme}:`
  if (url.host !== null) {
    text += '//'
    if (url.username !== '' || url.password !== '') {
      text += `${url.username}${url.password === '' ? '' : `:${url.password}`}@`
    }
    text += url.host + (url.port === '' ? '' : `:${url.port}`)
  } else if (url.opaquePath === null && url.path.length > 1 && url.path[0] === '') {
    // Without it the path would be read as a host.
    text += '/.'
  }
  text += serializePath(url)
  if (url.query !== null) text += `?${url.query}`
  return url.fragment === null ? text : `${text}#${url.fragment}`
}
