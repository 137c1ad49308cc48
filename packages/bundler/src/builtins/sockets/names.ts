import addresses from '../internal/addresses.ts'

/** For Node.js' own `net`, which connects to a name as to an address then: the host looks it up, as its address policy has it. */
export const names = {
  ...addresses,
  isIP: (host: unknown) => addresses.isIP(host) || (typeof host === 'string' && host !== '' ? 4 : 0),
}
