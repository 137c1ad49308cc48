import type { LookupAddress } from 'node:dns'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import type { AddressPolicy } from './address-policy.ts'
import { failure } from './failure.ts'
import type { Resolve } from './resolver.ts'

export interface ConnectorOptions {
  readonly policy: AddressPolicy
  readonly connectTimeoutMs: number
  readonly resolve: Resolve
  /** Gives what `https:` speaks TLS with. */
  readonly secureContext: () => SecureContext
}

export interface ConnectTarget {
  /** A name, or an address without brackets. */
  readonly hostname: string
  /** `https:` speaks TLS; `tcp:` leaves everything to the caller, and stays open when the peer has ended. */
  readonly protocol: string
  /** Empty: that of the protocol. */
  readonly port: string
}

export type Connected = (error: Error | null, socket: Socket | null) => void

/**
 * Makes a connection.
 * @param connected called once, when it is there or has failed
 * @returns the socket, which can be destroyed while it connects; undefined if the address is refused
 */
export type Connect = (target: ConnectTarget, connected: Connected) => Socket | undefined

/** Addresses of a name that are tried: a name with a thousand must not cause a thousand attempts. */
const MAX_ADDRESSES = 8
const KEEP_ALIVE_PROBE_MS = 60_000

/**
 * Makes connections to permitted addresses only. All connections of functions begin here, and the address that is checked is the
 * one that is connected to: a name that resolves to another address a moment later (DNS rebinding) gains nothing.
 */
export function createGuardedConnector({ policy, connectTimeoutMs, resolve, secureContext }: ConnectorOptions): Connect {
  const resolveJoined = joinLookups(resolve)

  async function lookUp(port: number, ...[hostname, { all = false }, callback]: Parameters<LookupFunction>): Promise<void> {
    let found: Checked
    try {
      found = checkAddresses(policy, await resolveJoined(hostname), port)
    } catch (cause) {
      return callback(cause as NodeJS.ErrnoException, [])
    }
    const [first] = found.permitted
    if (first === undefined) callback(failure(found.refusal), [])
    else if (all) callback(null, found.permitted)
    else callback(null, first.address, first.family)
  }

  return ({ hostname, protocol, port: portText }, connected) => {
    const isSecure = protocol === 'https:'
    const port = portText === '' ? (isSecure ? 443 : 80) : Number(portText)
    // Node looks up names only, so a literal address is checked here.
    const decision = isIP(hostname) === 0 ? 'permitted' : policy.check(hostname, port)
    if (decision !== 'permitted') {
      queueMicrotask(() => connected(failure(decision), null))
      return undefined
    }
    const options = { host: hostname, port, lookup: (...question: Parameters<LookupFunction>) => void lookUp(port, ...question) }
    const socket = isSecure
      ? connectTls({
          ...options,
          secureContext: secureContext(),
          ...(isIP(hostname) === 0 && { servername: hostname.replace(/\.$/, '') }),
          ALPNProtocols: ['http/1.1'],
        })
      : connectTcp({ ...options, allowHalfOpen: protocol === 'tcp:' })
    const timer = setTimeout(() => socket.destroy(failure('connect-timed-out')), connectTimeoutMs)
    let isSettled = false
    const settle: Connected = (error, result) => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      connected(error, result)
    }
    socket
      .setNoDelay(true)
      .setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
      .once(isSecure ? 'secureConnect' : 'connect', () => {
        // The address of the peer itself, once more.
        const peer = policy.check(socket.remoteAddress ?? '', port)
        if (peer === 'permitted') settle(null, socket)
        else socket.destroy(failure(peer))
      })
      .on('error', (error) => settle(error, null))
      .once('close', () => settle(failure('aborted'), null))
    return socket
  }
}

interface Checked {
  /** Those that may be connected to. */
  readonly permitted: LookupAddress[]
  /** Why there is none: the port, if only that is in the way. */
  readonly refusal: 'address-refused' | 'port-refused'
}

function checkAddresses(policy: AddressPolicy, addresses: readonly LookupAddress[], port: number): Checked {
  const checked = addresses.map((address) => ({ address, decision: policy.check(address.address, port) }))
  const permitted = checked.filter(({ decision }) => decision === 'permitted').map(({ address }) => address)
  const isPort = checked.some(({ decision }) => decision === 'port-refused')
  return { permitted: permitted.slice(0, MAX_ADDRESSES), refusal: isPort ? 'port-refused' : 'address-refused' }
}

/** Shares a running lookup with those of the same name: fetches of one upstream come in crowds. */
function joinLookups(resolve: Resolve): Resolve {
  const underWay = new Map<string, ReturnType<Resolve>>()
  return (hostname) => {
    const others = underWay.get(hostname)
    if (others !== undefined) return others
    const lookup = resolve(hostname).finally(() => underWay.delete(hostname))
    underWay.set(hostname, lookup)
    return lookup
  }
}
