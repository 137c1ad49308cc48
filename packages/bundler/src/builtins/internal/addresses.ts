/** Tells addresses apart, as `node:net` does. */
const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/

function isIPv4(text: unknown): boolean {
  return V4.test(`${text as string}`) && !/(?:^|\.)0\d/.test(`${text as string}`)
}

function isIPv6(text: unknown): boolean {
  const [address = '', zone, more] = `${text as string}`.split('%')
  if (more !== undefined || (zone !== undefined && !/^[\dA-Za-z.:_-]+$/.test(zone))) return false
  const halves = address.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  const last = groups.at(-1)
  let count = groups.length
  if (last !== undefined && last.includes('.')) {
    if (!isIPv4(last)) return false
    groups.pop()
    count += 1
  }
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return false
  return halves.length === 2 ? count < 8 : count === 8 && !address.startsWith(':') && !address.endsWith(':')
}

const isIP = (text: unknown): number => (isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0)

export default {
  isIP,
  isIPv4,
  isIPv6,
  kReinitializeHandle: Symbol('kReinitializeHandle'),
  kSetNoDelay: Symbol('kSetNoDelay'),
  kSetKeepAlive: Symbol('kSetKeepAlive'),
  kSetKeepAliveInitialDelay: Symbol('kSetKeepAliveInitialDelay'),
  kSetKeepAliveInterval: Symbol('kSetKeepAliveInterval'),
  kSetKeepAliveCount: Symbol('kSetKeepAliveCount'),
  makeSyncWrite: () => {},
  normalizedArgsSymbol: Symbol('normalizedArgs'),
}
