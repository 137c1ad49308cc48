// In place of `get-port-please`, which looks for a port by opening sockets.
export const getRandomPort = async () => 20_000 + Math.floor(Math.random() * 20_000)
