/** `node:dns` in a function: `localhost` is known; other names are found by whatever connects to them. */
import addresses from './internal/addresses.ts'
import { refuse } from './refuse.ts'

type Found = { readonly address: string; readonly family: number }
interface Options {
  readonly all?: boolean
  readonly family?: number | string
}
type Callback = (error: Error | null, address?: string | readonly Found[], family?: number) => void

const WHY = 'it has no network of its own; use fetch'
const NAMES = [
  'lookupService',
  'resolve',
  'resolve4',
  'resolve6',
  'resolveAny',
  'resolveCaa',
  'resolveCname',
  'resolveMx',
  'resolveNaptr',
  'resolveNs',
  'resolvePtr',
  'resolveSoa',
  'resolveSrv',
  'resolveTlsa',
  'resolveTxt',
  'reverse',
  'Resolver',
]
const refused = refuse('dns', WHY, NAMES)
const refusedPromises = refuse('dns/promises', WHY, NAMES)

function found(name: string, options: Options): readonly Found[] {
  const family = Number(`${options.family ?? 0}`.replace('IPv', ''))
  const all: Found[] = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  const fitting = name === 'localhost' || name === '' ? all.filter((one) => family === 0 || one.family === family) : []
  if (fitting.length > 0) return fitting
  const kind = addresses.isIP(name)
  // The host looks a name up when something connects to it, as its address policy has it: until then it stands for its address.
  return [{ address: name, family: kind === 0 ? (family === 6 ? 6 : 4) : kind }]
}

function lookup(name: string, options: Options | number | Callback, callback?: Callback): void {
  const done = typeof options === 'function' ? options : callback!
  const given: Options = typeof options === 'number' ? { family: options } : typeof options === 'function' ? {} : (options ?? {})
  globalThis.setImmediate(() => {
    const list = found(name, given)
    if (given.all === true) done(null, list)
    else done(null, list[0]!.address, list[0]!.family)
  })
}

async function lookupLater(name: string, options: Options = {}): Promise<Found | readonly Found[]> {
  const list = found(name, options)
  return options.all === true ? list : list[0]!
}

const CODES = {
  NODATA: 'ENODATA',
  FORMERR: 'EFORMERR',
  SERVFAIL: 'ESERVFAIL',
  NOTFOUND: 'ENOTFOUND',
  NOTIMP: 'ENOTIMP',
  REFUSED: 'EREFUSED',
  TIMEOUT: 'ETIMEOUT',
  CANCELLED: 'ECANCELLED',
}
const common = {
  getDefaultResultOrder: () => 'verbatim',
  getServers: () => [] as string[],
  setDefaultResultOrder() {},
  setServers() {},
  ...CODES,
}

export const promises = { ...refusedPromises, ...common, lookup: lookupLater }

export default { ...refused, ...common, ADDRCONFIG: 32, ALL: 16, lookup, promises, V4MAPPED: 8 }
