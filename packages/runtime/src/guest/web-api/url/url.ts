import {
  jsonStringify,
  regExpExec,
  SafeTypeError,
  stringSlice,
  stringStartsWith,
  stringToLowerCase,
} from '../../language/primordials.ts'
import { removeMatches, toScalarText, toText } from '../../language/values.ts'
import { customInspect } from '../console/inspect.ts'
import { parseHost } from './parse-host.ts'
import {
  encodeQuery,
  isSpecial,
  normalizePort,
  parsePath,
  parseUrl,
  serializePath,
  serializeUrl,
  splitPort,
  type UrlRecord,
} from './parse-url.ts'
import { FRAGMENT_SET, percentEncode, USERINFO_SET } from './percent-encoding.ts'
import { linkParams, refreshParams, URLSearchParams } from './search-params.ts'

const SCHEME = /^([a-z][a-z\d+.-]*)(?::|$)/i
const FIRST_DIGITS = /^\d+/
const HOST_END = /[/?#]/
const SPECIAL_HOST_END = /[/?#\\]/
const BREAKS = /[\t\n\r]+/g
const SHOWN_CHARS = 200

export class URL {
  #record: UrlRecord
  #href: string | undefined
  #params: URLSearchParams | undefined

  constructor(url: unknown, base?: unknown) {
    if (arguments.length === 0) throw new SafeTypeError('URL needs a text to parse.')
    this.#record = requireUrl(url, base)
  }

  static canParse(url: unknown, base?: unknown): boolean {
    return parseWithBase(toText(url), base) !== undefined
  }

  static parse(url: unknown, base?: unknown): URL | null {
    const text = toText(url)
    return parseWithBase(text, base) === undefined ? null : new URL(text, base)
  }

  get href(): string {
    return this.#getHref()
  }

  set href(value: unknown) {
    this.#record = requireUrl(value)
    this.#changed()
    if (this.#params !== undefined) refreshParams(this.#params, this.#record.query)
  }

  get origin(): string {
    const { scheme } = this.#record
    if (scheme === 'blob') {
      const inner = parseUrl(serializePath(this.#record))
      return inner?.scheme === 'http' || inner?.scheme === 'https' ? tupleOrigin(inner) : 'null'
    }
    return isSpecial(scheme) && scheme !== 'file' ? tupleOrigin(this.#record) : 'null'
  }

  get protocol(): string {
    return `${this.#record.scheme}:`
  }

  set protocol(value: unknown) {
    const record = this.#record
    const match = regExpExec(SCHEME, stripBreaks(value))
    if (match === null) return
    const scheme = stringToLowerCase(match[1]!)
    if (isSpecial(scheme) !== isSpecial(record.scheme)) return
    if (scheme === 'file' && (record.username !== '' || record.password !== '' || record.port !== '')) return
    if (record.scheme === 'file' && record.host === '') return
    record.scheme = scheme
    record.port = normalizePort(record.port, scheme)
    this.#changed()
  }

  get username(): string {
    return this.#record.username
  }

  set username(value: unknown) {
    if (this.#hasNoAuthority()) return
    this.#record.username = percentEncode(toText(value), USERINFO_SET)
    this.#changed()
  }

  get password(): string {
    return this.#record.password
  }

  set password(value: unknown) {
    if (this.#hasNoAuthority()) return
    this.#record.password = percentEncode(toText(value), USERINFO_SET)
    this.#changed()
  }

  get host(): string {
    const { host, port } = this.#record
    return (host ?? '') + (port === '' ? '' : `:${port}`)
  }

  set host(value: unknown) {
    this.#setHost(stripBreaks(value), true)
  }

  get hostname(): string {
    return this.#record.host ?? ''
  }

  set hostname(value: unknown) {
    this.#setHost(stripBreaks(value), false)
  }

  get port(): string {
    return this.#record.port
  }

  set port(value: unknown) {
    if (this.#hasNoAuthority()) return
    const text = toText(value)
    if (text === '') this.#record.port = ''
    else this.#setPort(stripBreaks(text))
    this.#changed()
  }

  get pathname(): string {
    return serializePath(this.#record)
  }

  set pathname(value: unknown) {
    const record = this.#record
    if (record.opaquePath !== null) return
    const text = stripBreaks(value)
    const special = isSpecial(record.scheme)
    record.path.length = 0
    const hasSlash = stringStartsWith(text, '/') || (special && stringStartsWith(text, '\\'))
    if (special || text !== '') parsePath(record, hasSlash ? stringSlice(text, 1) : text)
    else if (record.host === null) record.path[0] = ''
    this.#changed()
  }

  get search(): string {
    const { query } = this.#record
    return query === null || query === '' ? '' : `?${query}`
  }

  set search(value: unknown) {
    const text = toText(value)
    this.#record.query = text === '' ? null : encodeQuery(without('?', stripBreaks(text)), this.#record.scheme)
    this.#changed()
    if (this.#params !== undefined) refreshParams(this.#params, this.#record.query)
  }

  get searchParams(): URLSearchParams {
    if (this.#params === undefined) {
      const params = new URLSearchParams()
      refreshParams(params, this.#record.query)
      linkParams(params, (text) => {
        this.#record.query = text === '' ? null : text
        this.#changed()
      })
      this.#params = params
    }
    return this.#params
  }

  get hash(): string {
    const { fragment } = this.#record
    return fragment === null || fragment === '' ? '' : `#${fragment}`
  }

  set hash(value: unknown) {
    const text = toText(value)
    this.#record.fragment = text === '' ? null : percentEncode(without('#', stripBreaks(text)), FRAGMENT_SET)
    this.#changed()
  }

  toString(): string {
    return this.#getHref()
  }

  toJSON(): string {
    return this.#getHref()
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    const { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash } = this
    const shown = { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash }
    return `URL ${inspect(shown)}`
  }

  get [Symbol.toStringTag](): string {
    return 'URL'
  }

  #getHref(): string {
    return (this.#href ??= serializeUrl(this.#record))
  }

  #changed(): void {
    this.#href = undefined
  }

  #hasNoAuthority(): boolean {
    const { host, scheme } = this.#record
    return host === null || host === '' || scheme === 'file'
  }

  #setHost(text: string, withPort: boolean): void {
    const record = this.#record
    if (record.opaquePath !== null) return
    const special = isSpecial(record.scheme)
    const end = regExpExec(special ? SPECIAL_HOST_END : HOST_END, text)
    const input = end === null ? text : stringSlice(text, 0, end.index)
    if (record.scheme === 'file') {
      const host = input === '' ? '' : parseHost(input, false)
      if (host !== undefined) record.host = host === 'localhost' ? '' : host
      this.#changed()
      return
    }
    const { name, port } = splitPort(input)
    if (port !== null && (name === '' || !withPort)) return
    if (name === '' && (special || record.username !== '' || record.password !== '' || record.port !== '')) return
    const host = name === '' ? '' : parseHost(name, !special)
    if (host === undefined) return
    record.host = host
    if (port !== null) this.#setPort(port)
    this.#changed()
  }

  #setPort(text: string): void {
    const match = regExpExec(FIRST_DIGITS, text)
    if (match !== null && +match[0] <= 65_535) this.#record.port = normalizePort(match[0], this.#record.scheme)
  }
}

function tupleOrigin({ scheme, host, port }: UrlRecord): string {
  return `${scheme}://${host}${port === '' ? '' : `:${port}`}`
}

function stripBreaks(value: unknown): string {
  return removeMatches(toScalarText(value), BREAKS)
}

/** A text without the mark that it may begin with. */
function without(mark: string, text: string): string {
  return stringStartsWith(text, mark) ? stringSlice(text, 1) : text
}

function parseWithBase(url: string, base: unknown): UrlRecord | undefined {
  if (base === undefined) return parseUrl(toScalarText(url))
  const record = parseUrl(toScalarText(base))
  return record === undefined ? undefined : parseUrl(toScalarText(url), record)
}

/** @throws TypeError if it is no URL */
export function requireUrl(url: unknown, base?: unknown): UrlRecord {
  const record = parseWithBase(toText(url), base)
  if (record !== undefined) return record
  const against = base === undefined ? '' : ` against the base ${shown(base)}`
  throw new SafeTypeError(`Invalid URL: ${shown(url)}${against}`)
}

function shown(url: unknown): string {
  return jsonStringify(stringSlice(toText(url), 0, SHOWN_CHARS))
}
