// In place of `msw/node`, which takes hold of the network of Node.js: only of `fetch`.
import { getResponse } from './msw.mjs'

export function setupServer(...handlers) {
  const fetchOutside = globalThis.fetch
  let added = []
  return {
    listen() {
      globalThis.fetch = async function fetch(input, init) {
        const request = new Request(input, init)
        return (await getResponse([...added, ...handlers], request)) ?? fetchOutside(request)
      }
    },
    use(...more) {
      added = [...more, ...added]
    },
    resetHandlers() {
      added = []
    },
    close() {
      globalThis.fetch = fetchOutside
    },
  }
}
