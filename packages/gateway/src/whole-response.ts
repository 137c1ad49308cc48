import { ServerResponse, STATUS_CODES } from '@carpool/core/node-http'

/** What Node.js keeps of a response, by the names that it has had for ten years. */
interface ResponseState {
  /** Head of the answer; null until there is one. */
  _header: string | null
  _headerSent: boolean
  /** Everything was handed over: `writableEnded`. */
  finished: boolean
}

/**
 * How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into
 * its end.
 */
export const KEEP_ALIVE_MS = 72_000

/** As Node.js says it of a connection that goes on. */
const KEEP_ALIVE_LINES = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}\r\n`

/**
 * A response that can write a small answer in one go. For each answer `writeHead` and `end` check headers that were checked when
 * they came from the host, hold the connection back until head and body are together, and wait a tick before they say that all
 * has left.
 */
export class WholeResponse extends ServerResponse {
  /**
   * Writes an answer with a length, on a connection that goes on, and ends the response.
   * @param lines header lines that are known to be sound, with `content-length`, and without those that are for Node.js to write
   * @param body in Latin-1
   * @returns false if nothing was written: the answer is not as simple as that
   */
  writeWhole(status: number, lines: string, body: string): boolean {
    const { socket, req } = this
    // Behind the answers to other requests it has no connection yet.
    if (socket === null || !socket.writable || this.headersSent || !this.shouldKeepAlive) return false
    if (req.httpVersionMinor !== 1 || req.method === 'HEAD' || req.headers.expect !== undefined) return false
    const state = this as unknown as ResponseState
    state._header = lines
    state._headerSent = true
    this.statusCode = status
    const statusLine = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
    socket.write(`${statusLine}${lines}Date: ${dateNow()}\r\n${KEEP_ALIVE_LINES}\r\n${body}`, 'latin1')
    // What the system has not taken is on its way: the end comes behind it.
    if (socket.writableLength > 0 || socket.errored !== null) this.end()
    else {
      state.finished = true
      this.emit('finish')
    }
    return true
  }
}

let dateSecond = 0
let dateText = ''

/** The time as a `Date` header has it. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
