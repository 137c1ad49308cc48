import { ownMemoryOf, STREAM_MESSAGE_BYTES, STREAM_PART_BYTES, STREAM_WINDOW_BYTES, type Holder } from '@carpool/core'
import type { StreamPart } from './messages.ts'
import { readCost, type ReadTurns } from './read-turns.ts'
import type { MemoryWaiter, StreamMemory } from './stream-memory.ts'

/** Where bytes come from. */
export interface Source {
  pause(): void
  resume(): void
}

export interface InflowParts {
  readonly holder: Holder
  readonly memory: StreamMemory
  /** Absent: the source takes its turns by itself. */
  readonly turns?: ReadTurns
  readonly source: Source
  readonly post: (part: StreamPart) => void
}

type WaitingPart = Omit<StreamPart, 'bytes'> & { readonly bytes: Uint8Array }

/**
 * What comes from a peer for a function. It is passed on as far as the function has room for it and its share of memory allows;
 * the peer is not read meanwhile, so that no more than one read waits here.
 */
export class Inflow {
  /** All that has come, in bytes. */
  bytesIn = 0
  readonly #parts: InflowParts
  /** What has come in this run of the event loop: a thousand chunks of a byte are one part. */
  #fresh: Uint8Array[] = []
  #waiting: WaitingPart[] = []
  /** Of these, how many were passed on. */
  #passed = 0
  /** What was passed on and not credited. */
  #aheadBytes = 0
  #heldBytes = 0
  #memoryWaiter: MemoryWaiter | undefined
  /** Whoever is told of a part may credit it at once. */
  #isPassing = false
  #hasTurn = true
  #isPaused = false
  #isDiscarding = false
  #isClosed = false

  constructor(parts: InflowParts) {
    this.#parts = parts
  }

  /** Its source is not read at the moment. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Something that came, or its end, was not passed on yet. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Frames of a WebSocket come, be they of messages or not. @param cost see {@link readCost} */
  took(cost: number): void {
    if (this.#isClosed) return
    this.#charge(cost)
    this.#follow()
  }

  /** @param bytes a whole message of a WebSocket, if `message` is there: its frames were {@link took} */
  push(bytes: Uint8Array, message?: 'text' | 'bytes'): void {
    if (this.#isClosed) return
    this.bytesIn += bytes.length
    if (message === undefined) this.#charge(readCost(bytes.length))
    if (this.#isDiscarding) return this.#follow()
    if (message !== undefined) {
      this.#append(bytes, message)
      return this.#goOn()
    }
    if (this.#fresh.push(bytes) === 1) queueMicrotask(() => this.#takeFresh())
  }

  /** Nothing more comes. @param text of the end of a WebSocket */
  end(text?: string): void {
    if (this.#isClosed || this.#isDiscarding) return
    this.#takeFresh()
    this.#waiting.push({ bytes: NO_BYTES, end: true, ...(text !== undefined && { text }) })
    this.#passOn()
  }

  /** The function has taken so much. A host may say anything. */
  credit(bytes: number): void {
    const taken = Math.min(Math.max(bytes, 0), this.#aheadBytes)
    if (this.#isClosed || !(taken > 0)) return
    this.#aheadBytes -= taken
    const freed = Math.max(0, this.#heldBytes - this.#aheadBytes)
    this.#heldBytes -= freed
    this.#parts.memory.give(this.#parts.holder, freed)
    this.#goOn()
  }

  /** The function takes no more: what still comes is read, so that the end of the peer is seen, and dropped. */
  discard(): void {
    if (this.#isClosed || this.#isDiscarding) return
    this.#isDiscarding = true
    this.#letGo()
    this.#follow()
  }

  /** Gives back what it holds. Nothing is passed on any more. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#letGo()
    this.#parts.turns?.leave(this.#parts.holder, this)
  }

  /** For {@link ReadTurns}. */
  readAgain(): void {
    this.#hasTurn = true
    this.#follow()
  }

  #charge(cost: number): void {
    const { turns, holder } = this.#parts
    if (this.#hasTurn && turns !== undefined) this.#hasTurn = turns.took(holder, cost, this)
  }

  #takeFresh(): void {
    const [only] = this.#fresh
    if (only === undefined || this.#isClosed) return
    const bytes = this.#fresh.length === 1 ? only : Buffer.concat(this.#fresh)
    this.#fresh = []
    this.#append(bytes, undefined)
    this.#goOn()
  }

  #goOn(): void {
    this.#passOn()
    this.#follow()
  }

  #append(bytes: Uint8Array, message: 'text' | 'bytes' | undefined): void {
    let rest = bytes
    while (rest.length > STREAM_PART_BYTES) {
      const more = message !== undefined && ({ message, more: true } as const)
      this.#waiting.push({ bytes: rest.subarray(0, STREAM_PART_BYTES), ...more })
      rest = rest.subarray(STREAM_PART_BYTES)
    }
    if (rest.length > 0 || message !== undefined) this.#waiting.push({ bytes: rest, ...(message !== undefined && { message }) })
  }

  #passOn(): void {
    if (this.#isPassing) return
    this.#isPassing = true
    this.#passWhatMay()
    this.#isPassing = false
  }

  #passWhatMay(): void {
    const { holder, memory, post } = this.#parts
    while (this.#memoryWaiter === undefined) {
      const first = this.#waiting[this.#passed]
      if (first === undefined) return
      const cost = first.bytes.length + (first.message !== undefined && first.more !== true ? STREAM_MESSAGE_BYTES : 0)
      if (cost > 0 && this.#aheadBytes + cost > STREAM_WINDOW_BYTES) return
      if (cost > 0 && !memory.tryTake(holder, cost)) return this.#awaitMemory(cost)
      this.#aheadBytes += cost
      this.#heldBytes += cost
      this.#passed += 1
      if (this.#passed === this.#waiting.length) this.#forgetPassed()
      post({ ...first, bytes: ownMemoryOf(first.bytes) })
    }
  }

  #forgetPassed(): void {
    this.#waiting = []
    this.#passed = 0
  }

  #awaitMemory(bytes: number): void {
    this.#memoryWaiter = {
      bytes,
      ready: () => {
        this.#memoryWaiter = undefined
        this.#goOn()
      },
    }
    this.#parts.memory.wait(this.#parts.holder, this.#memoryWaiter)
  }

  #letGo(): void {
    const { holder, memory } = this.#parts
    this.#forgetPassed()
    this.#fresh = []
    if (this.#memoryWaiter !== undefined) memory.leave(holder, this.#memoryWaiter)
    this.#memoryWaiter = undefined
    memory.give(holder, this.#heldBytes)
    this.#heldBytes = 0
  }

  /** Has the peer read or not, as things stand. */
  #follow(): void {
    const isFull = !this.#isDiscarding && (this.#waiting.length > 0 || this.#aheadBytes >= STREAM_WINDOW_BYTES)
    const wanted = isFull || !this.#hasTurn
    if (wanted === this.#isPaused || this.#isClosed) return
    this.#isPaused = wanted
    if (wanted) this.#parts.source.pause()
    else this.#parts.source.resume()
  }
}

const NO_BYTES = new Uint8Array(0)
