/** What `node:url` has beside the legacy API: the globals, and files as URLs. */
import { resolve } from 'node:path'
import { hostOf, unicodeOf } from './small-parts.ts'

const { URL, URLSearchParams } = globalThis

function failure<E extends Error>(error: E, code: string, more: object = {}): E {
  Object.defineProperty(error, 'name', { value: error.name, configurable: true })
  return Object.assign(error, { code, ...more })
}

function isURL(value: unknown): value is URL {
  const { href, protocol, auth, path } = (value ?? {}) as Record<string, unknown>
  return Boolean(href && protocol && auth === undefined && path === undefined)
}

function fileURLToPath(given: string | URL, options?: { readonly windows?: boolean }): string {
  const url = typeof given === 'string' ? new URL(given) : given
  if (!isURL(url)) {
    throw failure(new TypeError('The "path" argument must be of type string or an instance of URL.'), 'ERR_INVALID_ARG_TYPE')
  }
  if (url.protocol !== 'file:') throw failure(new TypeError('The URL must be of scheme file'), 'ERR_INVALID_URL_SCHEME')
  if (options?.windows === true) {
    const path = decodeURIComponent(url.pathname.replaceAll('/', '\\'))
    return url.hostname === '' ? path.slice(1) : `\\\\${url.hostname}${path}`
  }
  if (url.hostname !== '') {
    throw failure(new TypeError('File URL host must be "localhost" or empty on linux'), 'ERR_INVALID_FILE_URL_HOST')
  }
  if (/%2f/i.test(url.pathname)) {
    throw failure(new TypeError('File URL path must not include encoded / characters'), 'ERR_INVALID_FILE_URL_PATH', {
      input: url,
    })
  }
  return decodeURIComponent(url.pathname)
}

function pathToFileURL(path: string): URL {
  let full = resolve(path)
  if (path.endsWith('/') && !full.endsWith('/')) full += '/'
  const escaped = full.replace(
    /[%\\\n\r\t?#]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
  return new URL(`file://${escaped}`)
}

function urlToHttpOptions(url: URL): Record<string, unknown> {
  const { hostname, pathname, port, username, password, search } = url
  return {
    __proto__: null,
    ...url,
    protocol: url.protocol,
    hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    hash: url.hash,
    search,
    pathname,
    path: `${pathname}${search}`,
    href: url.href,
    ...(port !== '' && { port: Number(port) }),
    ...((username !== '' || password !== '') && { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
  }
}

const SLASHED = ['http', 'https', 'ftp', 'gopher', 'file', 'ws', 'wss']

export default {
  URL,
  URLSearchParams,
  isURL,
  domainToASCII: (name: string) => hostOf(String(name)),
  domainToUnicode: (name: string) => unicodeOf(hostOf(String(name))),
  fileURLToPath,
  fileURLToPathBuffer: (url: string | URL) => new TextEncoder().encode(fileURLToPath(url)),
  pathToFileURL,
  urlToHttpOptions,
  unsafeProtocol: new Set(['javascript', 'javascript:']),
  hostlessProtocol: new Set(['javascript', 'javascript:']),
  slashedProtocol: new Set(SLASHED.flatMap((name) => [name, `${name}:`])),
  encodeStr: undefined,
}
