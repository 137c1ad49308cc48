const encoder = new TextEncoder()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Events that say when they were written. */
function paced(count, pauseMs) {
  let left = count
  return {
    async pull(controller) {
      if (left-- === 0) return controller.close()
      await sleep(pauseMs)
      controller.enqueue(encoder.encode(`data: ${Temporal.Now.instant().epochNanoseconds}\n\n`))
    },
  }
}

/** A comment, and then nothing. */
const idle = {
  start(controller) {
    controller.enqueue(encoder.encode(': open\n\n'))
  },
}

export default {
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    const source = pathname === '/idle' ? idle : paced(Number(searchParams.get('events')), Number(searchParams.get('pause')))
    return new Response(new ReadableStream(source), { headers: { 'content-type': 'text/event-stream' } })
  },
}
