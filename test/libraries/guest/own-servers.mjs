// Servers of node:http have no port in a function: what a test asks of its own goes to it without a socket.
import http from 'node:http'

if (typeof http.Server.prototype.handle === 'function') {
  const listening = new Map()
  const { listen } = http.Server.prototype
  http.Server.prototype.listen = function (...args) {
    const server = listen.apply(this, args)
    listening.set(String(server.address().port), server)
    return server
  }
  const fetchOutside = globalThis.fetch
  globalThis.fetch = async function fetch(input, init) {
    const { hostname, port } = new URL(input instanceof Request ? input.url : input)
    const server = hostname === 'localhost' || hostname === '127.0.0.1' ? listening.get(port) : undefined
    return server === undefined ? fetchOutside(input, init) : server.handle(new Request(input, init))
  }
}
