/** Streams that a function passes on as they are: the bytes of one go to the other here, and not by way of the host. */
import { STREAM_MOVED_MS, type StreamJoin, type StreamMoved } from '@carpool/wire'

/** Where bytes come from that the host would get. */
export interface StreamSource {
  readonly functionName: string
  /** Whether exactly so many bytes of it have left for the host, and more may come. */
  hasSent(bytes: number): boolean
  /** From now on its bytes go there, and only its end to the host. Called once. */
  passTo(target: StreamRoom): void
  /** The target has taken some. */
  goOn(): void
}

/** Where bytes go that the host would send. */
export interface StreamTarget extends StreamRoom {
  readonly functionName: string
  /** Whether it takes bytes, and those of the host. */
  readonly isJoinable: boolean
  /** From now on it takes what this source passes on, and nothing of the host. Called once. */
  joinWith(source: Pick<StreamSource, 'goOn'>): void
}

/** What a source sees of its target. */
export interface StreamRoom {
  /** What it got and has not passed on: no more than the window of a stream. */
  readonly aheadBytes: number
  write(bytes: Uint8Array): void
}

/** What the host has not been told of what moves between two streams. */
class Moving implements StreamRoom {
  untoldBytes = 0
  readonly of: StreamMoved['of']
  readonly number: number
  readonly #target: StreamTarget
  readonly #onMoved: (moving: Moving) => void

  constructor({ of, number }: StreamJoin, target: StreamTarget, onMoved: (moving: Moving) => void) {
    this.of = of
    this.number = number
    this.#target = target
    this.#onMoved = onMoved
  }

  get aheadBytes(): number {
    return this.#target.aheadBytes
  }

  write(bytes: Uint8Array): void {
    this.untoldBytes += bytes.length
    this.#onMoved(this)
    this.#target.write(bytes)
  }

  /** The target has passed some on: what moves there is not idle, though the source may be silent. */
  taken(): void {
    this.#onMoved(this)
  }
}

/** Joins streams of one host, and tells it how they move. */
export class JoinedStreams {
  readonly #tell: (message: StreamMoved) => void
  readonly #untold = new Set<Moving>()

  constructor(tell: (message: StreamMoved) => void) {
    this.#tell = tell
  }

  /** A host may ask for anything. */
  join(message: StreamJoin, source: StreamSource, target: StreamTarget): void {
    if (source.functionName !== target.functionName) return
    if (!source.hasSent(message.cameBytes) || !target.isJoinable) return
    const moving = new Moving(message, target, (one) => {
      if (this.#untold.size === 0) setTimeout(() => this.#tellAll(), STREAM_MOVED_MS).unref()
      this.#untold.add(one)
    })
    target.joinWith({
      goOn: () => {
        moving.taken()
        source.goOn()
      },
    })
    source.passTo(moving)
  }

  #tellAll(): void {
    for (const moving of this.#untold) {
      const { of, number, untoldBytes } = moving
      moving.untoldBytes = 0
      this.#tell({ type: 'stream-moved', of, number, bytes: untoldBytes })
    }
    this.#untold.clear()
  }
}
