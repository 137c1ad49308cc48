import { flipping, made } from './work.js'

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    switch (pathname) {
      case '/upload': {
        let bytes = 0
        for await (const part of request.body) bytes += part.length
        return new Response(String(bytes))
      }
      case '/download':
        return new Response(made(Number(searchParams.get('bytes'))))
      case '/pass':
        return new Response(request.body)
      case '/fetch':
        return new Response((await fetch(searchParams.get('from'))).body)
      case '/transform':
        return new Response(request.body.pipeThrough(flipping()))
    }
    return new Response('There is no such workload.', { status: 404 })
  },
}
