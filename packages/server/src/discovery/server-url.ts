/** Names of this machine; a server that listens on all addresses is reached through any of them. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'])

/** Whether two URLs lead to the same server of this machine, however they spell it. */
export function isSameServer(one: string, other: string): boolean {
  const normal = normalize(one)
  return normal !== undefined && normal === normalize(other)
}

function normalize(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  const host = LOOPBACK_NAMES.has(url.hostname) ? 'loopback' : url.hostname
  return `${url.protocol}//${host}:${url.port}${url.pathname.replace(/\/+$/, '')}`
}
