/** WebSockets: those that a function accepts, and those that it opens. */
import './web-sockets/opening.ts'

export { CloseEvent } from './web-sockets/close-event.ts'
export { acceptFor, isUsable, WebSocketPair } from './web-sockets/pair.ts'
export { WebSocket } from './web-sockets/web-socket.ts'
