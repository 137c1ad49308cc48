// Works for a number of loop iterations, in parts with waits between them:
// ?iterations=1000&parts=4&wait=5-25
export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url)
    const number = (name) => Number(searchParams.get(name))
    const [shortestMs, longestMs] = searchParams.get('wait').split('-').map(Number)
    const parts = number('parts')
    const iterations = number('iterations') / parts
    let value = 1
    for (let part = 0; part < parts; part++) {
      if (part > 0) await pause(shortestMs + Math.random() * (longestMs - shortestMs))
      value = burn(value, iterations)
    }
    return new Response(String(value))
  },
}

const haystack = new Int32Array(4096)

// The search is part of V8's own code, which is as fast in the first call as in any: what calls take does not depend on when V8 compiles
// this loop, or takes that back.
function burn(start, iterations) {
  let value = start
  for (let step = 0; step < iterations; step++) value += haystack.indexOf(1)
  return value
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
