// The same echo as plain Node.js does it, with ws.
import { WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
server.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
server.on('listening', () => console.log(JSON.stringify({ port: server.address().port })))
