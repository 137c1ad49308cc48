// Fetches from the address in the query: ?upstream=http://127.0.0.1:3000/
export default {
  async fetch(request) {
    const answer = await fetch(new URL(request.url).searchParams.get('upstream'))
    return new Response(await answer.text())
  },
}
