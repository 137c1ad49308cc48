import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import type { AddressPolicy } from './address-policy.ts'
import { failure } from './failure.ts'

/** Gives every address of a host name. */
export type Resolve = (hostname: string, callback: (error: Error | null, addresses: LookupAddress[]) => void) => void

export interface ConnectorOptions {
  readonly policy: AddressPolicy
  readonly connectTimeoutMs: number
  /** Default: the resolver of the system. */
  readonly resolve?: Resolve
}

/**
 * Makes connections for undici, to permitted addresses only. It is the one place where functions' connections begin, and the address that
 * is checked is the one that is connected to: a name that resolves to something else a moment later gains nothing.
 */
export function createGuardedConnector({
  policy,
  connectTimeoutMs,
  resolve = resolveBySystem,
}: ConnectorOptions): buildConnector.connector {
  const resolveJoined = joinLookups(resolve)
  const lookup: LookupFunction = (hostname, options, callback) => {
    resolveJoined(hostname, (error, addresses) => {
      const permitted = addresses?.filter(({ address }) => policy.permits(address)) ?? []
      const [first] = permitted
      if (error !== null) callback(error, [])
      else if (first === undefined) callback(failure('address-refused'), [])
      else if (options.all) callback(null, permitted)
      else callback(null, first.address, first.family)
    })
  }
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, lookup })
  return (options, callback) => {
    // Node looks up names only, so a literal address comes by here.
    if (isIP(options.hostname) !== 0 && !policy.permits(options.hostname)) {
      queueMicrotask(() => callback(failure('address-refused'), null))
      return
    }
    connect(options, callback)
  }
}

const resolveBySystem: Resolve = (hostname, callback) => systemLookup(hostname, { all: true }, callback)

/** Joins a lookup to one of the same name that is under way: fetches of one upstream come in crowds, and the system looks up few at a time. */
function joinLookups(resolve: Resolve): Resolve {
  const waiting = new Map<string, Parameters<Resolve>[1][]>()
  return (hostname, callback) => {
    const others = waiting.get(hostname)
    if (others !== undefined) return void others.push(callback)
    const callbacks = [callback]
    waiting.set(hostname, callbacks)
    resolve(hostname, (error, addresses) => {
      waiting.delete(hostname)
      for (const each of callbacks) each(error, addresses)
    })
  }
}
