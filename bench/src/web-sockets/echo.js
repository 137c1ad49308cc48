export default {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair())
    server.accept()
    server.addEventListener('message', ({ data }) => server.send(data))
    return new Response(null, { status: 101, webSocket: client })
  },
}
