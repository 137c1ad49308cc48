import type { LookupAddress } from 'node:dns'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import type { Holder } from '@carpool/core'
import type { AddressPolicy } from './address-policy.ts'
import { failure } from './failure.ts'
import type { Resolve } from './resolver.ts'
import type { Secure } from './secure.ts'

export interface ConnectorOptions {
  readonly policy: AddressPolicy
  readonly connectTimeoutMs: number
  readonly resolve: Resolve
  /** For `https:`. */
  readonly secure: Secure
}

export interface ConnectTarget {
  /** A name, or an address without brackets. */
  readonly hostname: string
  /** `https:` speaks TLS; `tcp:` leaves everything to the caller, and stays open when the peer has ended. */
  readonly protocol: string
  /** Empty: that of the protocol. */
  readonly port: string
  /** Who wants it. */
  readonly holder: Holder
}

export type PeerAddress = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** @param peer of the socket: one that speaks TLS does not know it */
export type Connected = (error: Error | null, socket: Socket | null, peer?: PeerAddress) => void

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
export function createGuardedConnector({ policy, connectTimeoutMs, resolve, secure }: ConnectorOptions): Connect {
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

  return ({ hostname, protocol, port: portText, holder }, connected) => {
    const isSecure = protocol === 'https:'
    const port = portText === '' ? (isSecure ? 443 : 80) : Number(portText)
    // Node looks up names only, so a literal address is checked here.
    const decision = isIP(hostname) === 0 ? 'permitted' : policy.check(hostname, port)
    if (decision !== 'permitted') {
      queueMicrotask(() => connected(failure(decision), null))
      return undefined
    }
    const options = { host: hostname, port, lookup: (...question: Parameters<LookupFunction>) => void lookUp(port, ...question) }
    // TLS says its end before the connection does.
    const raw = connectTcp({ ...options, allowHalfOpen: protocol !== 'http:' })
    let socket: Socket = raw
    const timer = setTimeout(() => socket.destroy(failure('connect-timed-out')), connectTimeoutMs)
    let isSettled = false
    const settle = (error: Error | null): void => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      if (error === null) connected(null, socket, raw)
      else connected(error, null)
    }
    raw
      .setNoDelay(true)
      .setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
      .once('connect', () => {
        // The address of the peer itself, once more.
        const peer = policy.check(raw.remoteAddress ?? '', port)
        if (peer !== 'permitted') socket.destroy(failure(peer))
        else if (!isSecure) settle(null)
      })
    if (isSecure) {
      const servername = isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}
      const agreed = { host: hostname, ...servername, ALPNProtocols: ['http/1.1'] }
      socket = secure(raw, { holder, ...agreed }).once('secureConnect', () => settle(null))
    }
    socket.on('error', settle).once('close', () => settle(failure('aborted')))
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
