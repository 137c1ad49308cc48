/**
 * What one piece of work has used so far: an invocation, the start of an isolate, or a function's background work. Entries,
 * timers and fetches keep the account of the work that began them.
 */
export class Account {
  /** CPU time charged so far, in ns. */
  cpuNs = 0
  egressBytesOut = 0
  egressBytesIn = 0
  /** Sockets that it opened. */
  sockets = 0
  /** How long sockets of it were open, together, up to {@link countSockets}. */
  socketUs = 0
  #takenNs = 0
  #socketsOpen = 0
  #socketsCountedAtMs = 0
  /** Its invocation has begun in its isolate. */
  hasBegun = false
  /** Its invocation waits, and has given its slot in the host back. */
  hasReturnedSlot = false
  #successor: Account | undefined

  /** From now on what is charged here goes to another account: the invocation has its answer, and its record is written. */
  close(successor: Account, atMs?: number): void {
    this.#successor = successor
    if (this.#socketsOpen === 0) return
    const nowMs = atMs ?? performance.now()
    this.countSockets(nowMs)
    successor.open.#changeSockets(this.#socketsOpen, nowMs)
    this.#socketsOpen = 0
  }

  charge(cpuNs: number): void {
    this.open.cpuNs += cpuNs
  }

  sent(bytes: number): void {
    this.open.egressBytesOut += bytes
  }

  received(bytes: number): void {
    this.open.egressBytesIn += bytes
  }

  /** A socket is open from now on, until {@link socketClosed}. */
  socketOpened(nowMs = performance.now()): void {
    const { open } = this
    open.sockets++
    open.#changeSockets(1, nowMs)
  }

  socketClosed(nowMs = performance.now()): void {
    this.open.#changeSockets(-1, nowMs)
  }

  /** Brings {@link socketUs} up to date. An open socket costs nothing until somebody asks. */
  countSockets(atMs?: number): void {
    if (this.#socketsOpen === 0) return
    const nowMs = atMs ?? performance.now()
    this.socketUs += this.#socketsOpen * Math.round((nowMs - this.#socketsCountedAtMs) * 1000)
    this.#socketsCountedAtMs = nowMs
  }

  #changeSockets(change: number, nowMs: number): void {
    this.countSockets(nowMs)
    this.#socketsCountedAtMs = nowMs
    this.#socketsOpen += change
  }

  /** This account, or the one that took its place. */
  get open(): Account {
    return this.#successor?.open ?? this
  }

  /**
   * What is in it, leaving nothing. The time of sockets that stay open is counted once a minute only: of what waits there would
   * be a record at every look.
   */
  take(): Pick<Account, 'cpuNs' | 'egressBytesOut' | 'egressBytesIn' | 'sockets' | 'socketUs'> {
    if (this.#socketsOpen > 0 && performance.now() - this.#socketsCountedAtMs >= SOCKETS_COUNTED_MS) this.countSockets()
    const { cpuNs, egressBytesOut, egressBytesIn, sockets, socketUs } = this
    this.#takenNs += cpuNs
    this.cpuNs = this.egressBytesOut = this.egressBytesIn = this.sockets = this.socketUs = 0
    return { cpuNs, egressBytesOut, egressBytesIn, sockets, socketUs }
  }

  /** Puts some of the CPU time back that was taken, in ns. */
  putBack(cpuNs: number): void {
    this.cpuNs += cpuNs
    this.#takenNs -= cpuNs
  }

  /** CPU time that was ever charged, taken or not, in ns. */
  get everNs(): number {
    return this.#takenNs + this.cpuNs
  }
}

/** How often the time of open sockets is counted that nobody closes, in ms. */
const SOCKETS_COUNTED_MS = 60_000
