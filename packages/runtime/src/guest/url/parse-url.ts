import { parseHost } from './host.ts'
import { C0_SET, FRAGMENT_SET, PATH_SET, percentEncode, QUERY_SET, SPECIAL_QUERY_SET, USERINFO_SET } from './percent.ts'

/** A URL record of the URL standard, its host in serialised form. */
export interface UrlRecord {
  scheme: string
  username: string
  password: string
  host: string | null
  /** Empty: none, or the default one of the scheme. */
  port: string
  path: string[]
  /** Set instead of `path` for a URL such as `mailto:a@b`. */
  opaquePath: string | null
  query: string | null
  fragment: string | null
}

const DEFAULT_PORTS = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ws', '80'],
  ['wss', '443'],
  ['ftp', '21'],
  ['file', ''],
])

export function isSpecial(scheme: string): boolean {
  return DEFAULT_PORTS.has(scheme)
}

/**
 * The basic URL parser of the URL standard, working on segments in place of single characters: a "#" always begins the fragment
 * and the first "?" before it the query, so both are cut off first.
 * @returns undefined if the input is not valid
 */
export function parseUrl(input: string, base?: UrlRecord): UrlRecord | undefined {
  let text = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '')
  let fragment: string | null = null
  const hash = text.indexOf('#')
  if (hash !== -1) {
    fragment = text.slice(hash + 1)
    text = text.slice(0, hash)
  }
  let query: string | null = null
  const mark = text.indexOf('?')
  if (mark !== -1) {
    query = text.slice(mark + 1)
    text = text.slice(0, mark)
  }
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text)?.[1]
  const url =
    scheme === undefined
      ? parseRelative(text, query !== null, fragment !== null, base)
      : parseAbsolute(scheme.toLowerCase(), text.slice(scheme.length + 1), query !== null || fragment !== null, base)
  if (url === undefined) return undefined
  if (query !== null) url.query = encodeQuery(query, url.scheme)
  if (fragment !== null) url.fragment = percentEncode(fragment, FRAGMENT_SET)
  return url
}

export function encodeQuery(query: string, scheme: string): string {
  return percentEncode(query, isSpecial(scheme) ? SPECIAL_QUERY_SET : QUERY_SET)
}

function emptyUrl(scheme: string): UrlRecord {
  return { scheme, username: '', password: '', host: null, port: '', path: [], opaquePath: null, query: null, fragment: null }
}

function isSlash(character: string | undefined, special: boolean): boolean {
  return character === '/' || (special && character === '\\')
}

function parseAbsolute(scheme: string, rest: string, more: boolean, base: UrlRecord | undefined): UrlRecord | undefined {
  const url = emptyUrl(scheme)
  if (scheme === 'file') return parseFile(url, rest, false, base?.scheme === 'file' ? base : undefined)
  if (isSpecial(scheme)) {
    if (base?.scheme === scheme && !rest.startsWith('//')) return parseAgainst(url, rest, false, base)
    return parseAuthority(url, rest.replace(/^[/\\]+/, ''))
  }
  if (rest.startsWith('//')) return parseAuthority(url, rest.slice(2))
  if (rest.startsWith('/')) {
    parsePath(url, rest.slice(1))
    return url
  }
  // A space at the end would be lost when the URL is parsed again, if nothing followed it.
  url.opaquePath = percentEncode(more && rest.endsWith(' ') ? `${rest.slice(0, -1)}%20` : rest, C0_SET)
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
    return text === '' && !hasQuery && hasFragment ? { ...base, path: [] } : undefined
  }
  const url = emptyUrl(base.scheme)
  return base.scheme === 'file' ? parseFile(url, text, hasQuery, base) : parseAgainst(url, text, hasQuery, base)
}

/** The "relative" and "relative slash" states. */
function parseAgainst(url: UrlRecord, text: string, hasQuery: boolean, base: UrlRecord): UrlRecord | undefined {
  const special = isSpecial(url.scheme)
  if (isSlash(text[0], special) && isSlash(text[1], special)) {
    return parseAuthority(url, special ? text.replace(/^[/\\]+/, '') : text.slice(2))
  }
  url.username = base.username
  url.password = base.password
  url.host = base.host
  url.port = base.port
  if (isSlash(text[0], special)) {
    parsePath(url, text.slice(1))
    return url
  }
  url.path = [...base.path]
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
  if (isSlash(text[0], true)) {
    if (isSlash(text[1], true)) return parseFileHost(url, text.slice(2))
    const rest = text.slice(1)
    if (base !== undefined) {
      url.host = base.host
      const drive = base.path[0]
      if (!startsWithDrive(rest) && drive !== undefined && isNormalizedDrive(drive)) url.path.push(drive)
    }
    parsePath(url, rest)
    return url
  }
  if (base === undefined) {
    parsePath(url, text)
    return url
  }
  url.host = base.host
  url.path = [...base.path]
  if (text === '') {
    if (!hasQuery) url.query = base.query
    return url
  }
  if (startsWithDrive(text)) url.path = []
  else shortenPath(url)
  parsePath(url, text)
  return url
}

function parseFileHost(url: UrlRecord, text: string): UrlRecord | undefined {
  const end = text.search(/[/\\]/)
  const name = end === -1 ? text : text.slice(0, end)
  if (/^[a-z][:|]$/i.test(name)) {
    parsePath(url, text)
    return url
  }
  if (name !== '') {
    const host = parseHost(name, false)
    if (host === undefined) return undefined
    url.host = host === 'localhost' ? '' : host
  }
  parsePathStart(url, end === -1 ? '' : text.slice(end))
  return url
}

function parseAuthority(url: UrlRecord, text: string): UrlRecord | undefined {
  const special = isSpecial(url.scheme)
  const end = text.search(special ? /[/\\]/ : /\//)
  const authority = end === -1 ? text : text.slice(0, end)
  const at = authority.lastIndexOf('@')
  const hostPort = authority.slice(at + 1)
  if (at !== -1) {
    if (hostPort === '') return undefined
    const credentials = authority.slice(0, at)
    const colon = credentials.indexOf(':')
    url.username = percentEncode(colon === -1 ? credentials : credentials.slice(0, colon), USERINFO_SET)
    url.password = colon === -1 ? '' : percentEncode(credentials.slice(colon + 1), USERINFO_SET)
  }
  const { name, port } = splitPort(hostPort)
  if (name === '' && (special || port !== null || at !== -1)) return undefined
  const host = name === '' ? '' : parseHost(name, !special)
  if (host === undefined) return undefined
  url.host = host
  if (port !== null) {
    if (!/^\d*$/.test(port) || +port > 65_535) return undefined
    url.port = normalizePort(port, url.scheme)
  }
  parsePathStart(url, end === -1 ? '' : text.slice(end))
  return url
}

/** Splits `host:port` at the first colon outside brackets; `port` is null if there is none. */
export function splitPort(text: string): { name: string; port: string | null } {
  let inBrackets = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '[') inBrackets = true
    else if (character === ']') inBrackets = false
    else if (character === ':' && !inBrackets) return { name: text.slice(0, index), port: text.slice(index + 1) }
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
  if (special || text !== '') parsePath(url, isSlash(text[0], special) ? text.slice(1) : text)
}

/** The "path" state: adds the segments of `text`, which has no slash in front. */
export function parsePath(url: UrlRecord, text: string): void {
  const segments = text.split(isSpecial(url.scheme) ? /[/\\]/ : '/')
  for (let index = 0; index < segments.length; index++) {
    let segment = segments[index]!
    const isLast = index === segments.length - 1
    if (/^(?:\.|%2e){2}$/i.test(segment)) {
      shortenPath(url)
      if (isLast) url.path.push('')
    } else if (/^(?:\.|%2e)$/i.test(segment)) {
      if (isLast) url.path.push('')
    } else {
      if (url.scheme === 'file' && url.path.length === 0 && /^[a-z][:|]$/i.test(segment)) segment = `${segment[0]}:`
      url.path.push(percentEncode(segment, PATH_SET))
    }
  }
}

function shortenPath(url: UrlRecord): void {
  if (url.scheme === 'file' && url.path.length === 1 && isNormalizedDrive(url.path[0]!)) return
  url.path.pop()
}

function isNormalizedDrive(segment: string): boolean {
  return /^[a-z]:$/i.test(segment)
}

function startsWithDrive(text: string): boolean {
  return /^[a-z][:|](?:[/\\]|$)/i.test(text)
}

export function serializePath(url: UrlRecord): string {
  return url.opaquePath ?? (url.path.length === 0 ? '' : `/${url.path.join('/')}`)
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
