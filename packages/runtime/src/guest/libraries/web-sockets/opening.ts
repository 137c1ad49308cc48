/** What `new WebSocket(url)` does. */
import { OpenWebSocket, setTimeout } from '../../web-api/host.ts'
import { ChannelEnd } from './channel-end.ts'
import { type Inside, setOpener } from './web-socket.ts'

/** The server that the function connects to. */
class ServerEnd extends ChannelEnd {
  readonly #inside: Inside
  readonly #socket: OpenWebSocket
  #isConnected = false

  constructor(inside: Inside, url: string, protocols: readonly string[]) {
    const socket = new OpenWebSocket(url, protocols, {
      connected: ({ protocol = '', extensions = '' }) => {
        this.#isConnected = true
        inside.opened(protocol, extensions)
      },
      // Without effect if it was closed by its close frames.
      closed: (end) => inside.broke(end.ok ? undefined : end.message),
    })
    super(socket.channel, inside, () => {})
    this.#inside = inside
    this.#socket = socket
  }

  override close(code: number, reason: string): void {
    if (this.#isConnected) return super.close(code, reason)
    this.#socket.stop()
    setTimeout(() => this.#inside.broke('The WebSocket was closed before it was open.'), 0)
  }
}

setOpener((inside, url, protocols) => {
  const end = new ServerEnd(inside, url, protocols)
  inside.other = end
  end.receive()
})
