import { type Channel, type MessageKind, setTimeout } from '../../web-api/host.ts'
import { asInterfaces } from '../interfaces.ts'
import { ChannelEnd } from './channel-end.ts'
import { type Inside, insideOf, newEnd, type OtherEnd } from './web-socket.ts'

/** The end of a pair whose other end is in this isolate too: what it says arrives in a turn of its own, in order. */
class LocalEnd implements OtherEnd {
  readonly waitingBytes = 0
  readonly inside: Inside
  readonly #back: Inside

  /** @param inside where what is said goes. @param back who says it */
  constructor(inside: Inside, back: Inside) {
    this.inside = inside
    this.#back = back
  }

  message(kind: MessageKind, text: string): void {
    const { inside } = this
    if (inside.isAccepted) setTimeout(() => inside.message(kind, text), 0)
    else inside.message(kind, text)
  }

  close(code: number, reason: string): void {
    const { inside } = this
    // Whoever gets the end of it closes it.
    if (!inside.isAccepted) return inside.closed(code, reason)
    setTimeout(() => {
      inside.closed(code, reason)
      this.#back.closed(code, reason)
    }, 0)
  }
}

/** Two ends of a WebSocket, one for the client, by a Response, and one for the function. */
export class WebSocketPair {
  declare readonly 0: object
  declare readonly 1: object

  constructor() {
    const one = newEnd()
    const two = newEnd()
    one.other = new LocalEnd(two, one)
    two.other = new LocalEnd(one, two)
    Object.defineProperty(this, 0, { value: one.socket, enumerable: true, writable: true, configurable: true })
    Object.defineProperty(this, 1, { value: two.socket, enumerable: true, writable: true, configurable: true })
  }
}

/** Whether a value can be the WebSocket of a response: an end that was neither accepted nor given away. */
export function isUsable(value: unknown): boolean {
  const inside = insideOf(value)
  return inside?.other instanceof LocalEnd && !inside.isAccepted && !inside.isGivenAway
}

/**
 * Gives the client of a call the end of a pair: from now on what the function's end says goes to the client, and what comes
 * from the client to the function's end.
 * @param value {@link isUsable}
 * @param onEnd the WebSocket is closed, and its end has heard of that
 */
export function acceptFor(value: unknown, channel: Channel, protocol: string, onEnd: () => void): void {
  const client = insideOf(value)!
  const { inside } = client.other as LocalEnd
  const end = new ChannelEnd(channel, inside, onEnd)
  inside.other = end
  inside.opened(protocol, '')
  const { messages, ending } = client.giveAway()
  for (let index = 0; index < messages.length; index++) end.message(messages[index]!.kind, messages[index]!.text)
  if (ending !== undefined) end.close(ending.code, ending.reason)
  end.receive()
}

asInterfaces({ WebSocketPair })
