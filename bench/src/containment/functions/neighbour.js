// Waits, works for a number of loop iterations, and answers with as many times the number in the query: ?wait=20&iterations=2000&number=17
const haystack = new Int32Array(4096)

export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url)
    const iterations = Number(searchParams.get('iterations'))
    const number = Number(searchParams.get('number'))
    const waitMs = Number(searchParams.get('wait'))
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    let sum = 0
    // The search is part of V8's own code and finds nothing: a first call takes no longer than a later one.
    for (let step = 0; step < iterations; step++) sum += number + haystack.indexOf(1) + 1
    return new Response(String(sum))
  },
}
