// Sleeps for as many ms as the query says: ?ms=100
export default {
  async fetch(request) {
    const ms = Number(new URL(request.url).searchParams.get('ms'))
    await new Promise((resolve) => setTimeout(resolve, ms))
    return new Response('slept')
  },
}
