import type { Socket } from 'node:net'

/** What a parser of Node.js takes for "another protocol begins here": it leaves the rest of what was read alone. */
const OTHER_PROTOCOL = 2

/** As in `lib/_http_common.js` of Node.js, undocumented: gets each request, and tells the parser how to go on behind it. */
interface Parser {
  onIncoming: (incoming: { upgrade: boolean }) => number
}

/**
 * Takes no further request from a connection, also of what has been read: Node.js reads 64 KiB at once, which may hold a thousand
 * requests, and would make two streams of each, and two errors of them when the connection closes. Nothing more is read either,
 * so that it is not noticed when the client leaves.
 */
export function stopReading(socket: Socket & { parser?: Parser | null }): void {
  if (socket.parser) {
    socket.parser.onIncoming = (incoming) => {
      incoming.upgrade = false
      return OTHER_PROTOCOL
    }
  }
  // Node.js reads on at the end of each request and once a client takes its answers, and ReadTurns in its turn.
  socket.off('resume', stayPaused).on('resume', stayPaused)
  process.nextTick(() => pauseReading(socket))
}

function stayPaused(this: Socket): void {
  pauseReading(this)
}

/**
 * Pauses a connection. Of one that was resumed and paused in the same tick Node.js says `resume` behind that, and its HTTP server
 * reads again; to pause it once more would do nothing then.
 */
export function pauseReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause')
  else socket.pause()
}
