import { monotonicClock, SharedPool } from '@carpool/core'
import { createAddressPolicy, createOwnAddresses } from './address-policy.ts'
import { ConnectionPool } from './connection-pool.ts'
import { ConnectionSlots } from './connection-slots.ts'
import { createEgressTurns } from './fetch-turns.ts'
import { createGuardedConnector, type Connect } from './guarded-connector.ts'
import { createHandshakeTurns } from './handshake-turns.ts'
import { affordableConnections, DEFAULT_LIMITS, type EgressLimits } from './limits.ts'
import type { EgressPolicy } from './messages.ts'
import { ReadTurns } from './read-turns.ts'
import { createResolver, type Resolve } from './resolver.ts'
import { createSecure, type Secure } from './secure.ts'
import { StreamMemory } from './stream-memory.ts'
import { TlsContexts } from './tls-contexts.ts'

export interface OutsideOptions extends EgressPolicy {
  /** Gives the addresses of a host name. Default: hosts file and DNS. */
  readonly resolve?: Resolve
}

/** What fetches and sockets share: the way out, and the connections and memory that they take there. */
export class Outside {
  readonly limits: EgressLimits
  readonly connect: Connect
  readonly secure: Secure
  readonly slots: ConnectionSlots
  /** Connections of fetches. */
  readonly pool: ConnectionPool
  readonly memory: StreamMemory
  readonly tls: TlsContexts
  readonly turns = createEgressTurns()
  readonly reads = new ReadTurns()
  /** Connections of sockets. */
  sockets = 0

  /** @throws CarpoolError `invalid-setting` if a range of `allow` or `deny` is none */
  constructor({ allow = [], deny = [], limits: given = {}, resolve = createResolver() }: OutsideOptions) {
    const wanted = { ...DEFAULT_LIMITS, ...given }
    const limits = { ...wanted, maxConnections: affordableConnections(wanted.maxConnections) }
    const policy = createAddressPolicy({ allow, deny, isOwn: createOwnAddresses(monotonicClock) })
    this.limits = limits
    this.memory = new StreamMemory(new SharedPool(limits.maxMemoryBytes))
    this.tls = new TlsContexts(this.memory)
    const { connectTimeoutMs, maxHandshakeBytes } = limits
    const { tls } = this
    const turns = createHandshakeTurns(this.turns)
    this.secure = createSecure({ maxHandshakeBytes, turns, commonContext: () => tls.common })
    this.connect = createGuardedConnector({ policy, connectTimeoutMs, resolve, secure: this.secure })
    this.pool = new ConnectionPool({ connect: this.connect, ...limits, others: () => this.sockets })
    this.slots = new ConnectionSlots(limits)
  }
}
