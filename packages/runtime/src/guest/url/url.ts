import { customInspect } from '../console/inspect.ts'
import { parseHost } from './host.ts'
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
import { FRAGMENT_SET, percentEncode, USERINFO_SET } from './percent.ts'
import { linkParams, refreshParams, URLSearchParams } from './url-search-params.ts'
import { toScalarText, toText } from '../to-text.ts'

export class URL {
  #record: UrlRecord
  #href: string | undefined
  #params: URLSearchParams | undefined

  constructor(url: unknown, base?: unknown) {
    if (arguments.length === 0) throw new TypeError('URL needs a text to parse.')
    const record = parseWithBase(toText(url), base)
    if (record === undefined) throw invalid(url, base)
    this.#record = record
  }

  static canParse(url: unknown, base?: unknown): boolean {
    return parseWithBase(toText(url), base) !== undefined
  }

  static parse(url: unknown, base?: unknown): URL | null {
    return URL.canParse(url, base) ? new URL(url, base) : null
  }

  get href(): string {
    return (this.#href ??= serializeUrl(this.#record))
  }

  set href(value: unknown) {
    const record = parseUrl(toScalarText(value))
    if (record === undefined) throw invalid(value, undefined)
    this.#record = record
    this.#changed()
    if (this.#params !== undefined) refreshParams(this.#params, record.query)
  }

  get origin(): string {
    const { scheme, host, port } = this.#record
    if (scheme === 'blob') {
      const inner = parseUrl(serializePath(this.#record))
      return inner?.scheme === 'http' || inner?.scheme === 'https' ? new URL(serializeUrl(inner)).origin : 'null'
    }
    return isSpecial(scheme) && scheme !== 'file' ? `${scheme}://${host}${port === '' ? '' : `:${port}`}` : 'null'
  }

  get protocol(): string {
    return `${this.#record.scheme}:`
  }

  set protocol(value: unknown) {
    const record = this.#record
    const scheme = /^([a-z][a-z\d+.-]*)(?::|$)/i.exec(stripBreaks(value))?.[1]?.toLowerCase()
    if (scheme === undefined || isSpecial(scheme) !== isSpecial(record.scheme)) return
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
    record.path = []
    const hasSlash = text.startsWith('/') || (special && text.startsWith('\\'))
    if (special || text !== '') parsePath(record, hasSlash ? text.slice(1) : text)
    else if (record.host === null) record.path.push('')
    this.#changed()
  }

  get search(): string {
    const { query } = this.#record
    return query === null || query === '' ? '' : `?${query}`
  }

  set search(value: unknown) {
    const text = toText(value)
    this.#record.query = text === '' ? null : encodeQuery(stripBreaks(text).replace(/^\?/, ''), this.#record.scheme)
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
    this.#record.fragment = text === '' ? null : percentEncode(stripBreaks(text).replace(/^#/, ''), FRAGMENT_SET)
    this.#changed()
  }

  toString(): string {
    return this.href
  }

  toJSON(): string {
    return this.href
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    const { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash } = this
    const shown = { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash }
    return `URL ${inspect(shown)}`
  }

  get [Symbol.toStringTag](): string {
    return 'URL'
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
    const input = text.split(special ? /[/?#\\]/ : /[/?#]/, 1)[0]!
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
    const digits = /^\d+/.exec(text)?.[0]
    if (digits !== undefined && +digits <= 65_535) this.#record.port = normalizePort(digits, this.#record.scheme)
  }
}

function stripBreaks(value: unknown): string {
  return toScalarText(value).replace(/[\t\n\r]/g, '')
}

function parseWithBase(url: string, base: unknown): UrlRecord | undefined {
  if (base === undefined) return parseUrl(url.toWellFormed())
  const record = parseUrl(toScalarText(base))
  return record === undefined ? undefined : parseUrl(url.toWellFormed(), record)
}

function invalid(url: unknown, base: unknown): TypeError {
  const shown = JSON.stringify(toText(url).slice(0, 200))
  const against = base === undefined ? '' : ` against the base ${JSON.stringify(toText(base).slice(0, 200))}`
  return new TypeError(`Invalid URL: ${shown}${against}`)
}
