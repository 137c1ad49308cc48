/** How streams of bodies leave: as fast as they are taken, and no longer than anybody waits for them. */
import { STREAM_WINDOW_BYTES } from '@carpool/core'
import { OF_CALL, OF_FETCH } from '@carpool/runtime'
import t from 'tap'
import { type Guest, guestOf } from './support/guest.ts'

/** `source(ms)` gives a chunk of 1,000 bytes for each pull, after a timer if `ms` is given, and logs what becomes of it. */
const SOURCE = `
  const waitFor = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const chunk = () => new Uint8Array(1000).fill(120)
  const source = (ms, more = {}) => new ReadableStream({
    async pull(controller) { console.log('pull'); if (ms !== undefined) await waitFor(ms); controller.enqueue(chunk()) },
    cancel(reason) { console.log('canceled', reason?.name) },
    ...more,
  }, { highWaterMark: 0 })`

const LIMIT = { maxBodyBytes: 10_000 }

const count = (guest: Guest, line: string): number => guest.lines.filter((one) => one.startsWith(`info: ${line}`)).length

/** Fires what timers there are, and those that they start, a few times over. */
function fireTimers(guest: Guest, rounds = 5): void {
  for (let round = 0; round < rounds; round++) {
    const due = [...guest.timers.keys()]
    for (const timer of due) guest.fireTimer(timer)
  }
}

t.test('A stream leaves as fast as it is taken', (t) => {
  const guest = guestOf(`${SOURCE}; return new Response(source())`, LIMIT)
  const call = guest.start()
  fireTimers(guest)
  t.equal(guest.heads.get(call)?.status, 200)
  const window = Math.floor(STREAM_WINDOW_BYTES / 1000)
  t.equal(count(guest, 'pull'), window + 1)
  t.equal(guest.bodyOf(call).length, STREAM_WINDOW_BYTES)
  guest.streamCredit(OF_CALL, call, 10_000)
  fireTimers(guest)
  t.equal(count(guest, 'pull'), window + 11)
  t.equal(guest.bodyOf(call).length, STREAM_WINDOW_BYTES + 10_000)
  guest.cancel(call)
  t.same(guest.lines.slice(-1), ['info: canceled AbortError'])
  fireTimers(guest)
  t.equal(count(guest, 'pull'), window + 11)
  t.end()
})

t.test('A stream that is exactly as long as the limit is answered', (t) => {
  const body = `${SOURCE}; let left = 10
    const pull = (controller) => { if (left-- === 0) controller.close(); else controller.enqueue(chunk()) }
    return new Response(source(undefined, { pull }))`
  t.equal(guestOf(body, LIMIT).call().body, 'x'.repeat(10_000))
  t.end()
})

t.test('A stream that is longer than the limit of what is held leaves by parts', (t) => {
  const guest = guestOf(
    `return new Response(new ReadableStream({
      pull(controller) { for (let count = 0; count < 100; count++) controller.enqueue(new Uint8Array(1000)); controller.close() },
    }))`,
    LIMIT,
  )
  const call = guest.start()
  t.same(guest.streamOf(OF_CALL, call).parts, [65_536, 34_464])
  t.same(guest.endedAnswers, [call])
  t.end()
})

/** Responses over `source(5)` in every shape: of each, the client leaves when some chunks have come. */
const SHAPES: Readonly<Record<string, string>> = {
  'a stream': `return new Response(source(5))`,
  'the body of another response': `return new Response(new Response(source(5)).body)`,
  'a stream through a transform': `return new Response(source(5).pipeThrough(new TransformStream()))`,
  'a stream through two transforms': `
    const second = new TransformStream({ transform: (chunk, to) => to.enqueue(chunk) })
    return new Response(source(5).pipeThrough(new TransformStream()).pipeThrough(second))`,
  'a stream through a transform with the signal': `
    return new Response(source(5).pipeThrough(new TransformStream(), { signal: request.signal }))`,
  'a stream whose listener errors it': `
    let controller
    const stream = source(5, { start(given) { controller = given } })
    request.signal.addEventListener('abort', () => {
      console.log('canceled by its listener')
      controller.error(new Error('gone'))
    })
    return new Response(stream)`,
  'a stream of bytes': `return new Response(source(5, { type: 'bytes' }))`,
  'a stream of bytes by request': `return new Response(source(5, {
      type: 'bytes', autoAllocateChunkSize: 100,
      async pull(controller) {
        console.log('pull'); await waitFor(5); controller.byobRequest.view[0] = 120; controller.byobRequest.respond(1)
      },
    }))`,
  'a generator': `return new Response(ReadableStream.from((async function* () {
      try { for (;;) { console.log('pull'); await waitFor(5); yield chunk() } } finally { console.log('canceled') }
    })()))`,
  'an iterator': `return new Response(ReadableStream.from({
      [Symbol.asyncIterator]: () => ({
        async next() { console.log('pull'); await waitFor(5); return { done: false, value: chunk() } },
        async return(reason) { console.log('canceled', reason.name); return {} },
      }),
    }))`,
  'an iterator through a transform': `return new Response(ReadableStream.from({
      [Symbol.asyncIterator]: () => ({
        async next() { console.log('pull'); await waitFor(5); return { done: false, value: chunk() } },
        return(reason) { console.log('canceled', reason.name); return {} },
      }),
    }).pipeThrough(new TransformStream()))`,
  'both halves of a tee': `
    const [mine, sent] = source(5).tee()
    fetch('http://up/', { method: 'POST', body: sent }).catch(() => {})
    return new Response(mine)`,
  'both halves of a clone': `
    const response = new Response(source(5))
    fetch('http://up/', { method: 'POST', body: response.clone().body }).catch(() => {})
    return response`,
  'a stream whose pull never resolves': `
    return new Response(source(5, { pull() { console.log('pull'); return new Promise(() => {}) } }))`,
  'a stream that gives by a timer, not when asked': `
    let timer
    return new Response(source(5, {
      start(controller) { timer = setInterval(() => { console.log('pull'); controller.enqueue(chunk()) }, 5) },
      pull() {},
      cancel() { clearInterval(timer); console.log('canceled') },
    }))`,
  'the body of a request that is being sent': `await fetch('http://up/', { method: 'POST', body: source(5) })`,
  'a body that waitUntil sends': `
    ctx.waitUntil(fetch(new Request('http://up/', { method: 'POST', body: source(5) })).catch(() => {}))
    await new Promise(() => {})`,
}

for (const [title, body] of Object.entries(SHAPES)) {
  t.test(`When the client leaves, nobody pulls any more, and the source is told once: ${title}`, (t) => {
    const guest = guestOf(`${SOURCE}; ${body}`)
    const call = guest.start()
    fireTimers(guest, 2)
    t.ok(count(guest, 'pull') > 0)
    guest.cancel(call)
    const pulls = count(guest, 'pull')
    fireTimers(guest)
    t.equal(count(guest, 'pull'), pulls, 'no more pulls')
    t.equal(count(guest, 'canceled'), 1, 'told once')
    t.same(
      guest.lines.filter((line) => !/^info: (?:pull|canceled)/.test(line)),
      [],
    )
    t.same([guest.answers.size, guest.endedAnswers.length, guest.failures.size], [0, 0, 0])
    t.same([...guest.fetches.keys()], guest.stoppedFetches)
    t.same(guest.canceled, [call])
    t.same([...guest.timers.keys()], [], 'no timer goes on')
    t.end()
  })
}

/** Responses of three chunks, or two and an error, and what they come to if nobody leaves. */
const FINITE: Readonly<Record<string, [pull: string, end: 'answer' | 'failure']>> = {
  'that ends': [`if (left-- === 0) controller.close(); else controller.enqueue(chunk())`, 'answer'],
  'that errors': [`if (left-- === 1) controller.error(new Error('dry')); else controller.enqueue(chunk())`, 'failure'],
}

const WAYS: Readonly<Record<string, string>> = {
  'read as it is': 'stream',
  'through a transform': 'stream.pipeThrough(new TransformStream())',
  'half of a tee': 'stream.tee()[0]',
}

for (const [title, [pull, end]] of Object.entries(FINITE)) {
  for (const [way, expression] of Object.entries(WAYS)) {
    t.test(`A client may leave at every point of a stream ${title}, ${way}`, (t) => {
      const seen = new Set<string>()
      for (let steps = 0; seen.size < 2; steps++) {
        const guest = guestOf(`${SOURCE}; let left = 3
          const stream = source(5, { async pull(controller) { console.log('pull'); await waitFor(5); ${pull} } })
          return new Response(${expression})`)
        const call = guest.start()
        for (let step = 0; step < steps; step++) fireTimers(guest, 1)
        const hasEnded = guest.endedAnswers.includes(call) || guest.failures.has(call)
        const pulls = count(guest, 'pull')
        guest.cancel(call)
        fireTimers(guest)
        const moment = `after ${steps} steps`
        t.same([guest.endedAnswers.length, guest.failures.size], hasEnded ? (end === 'answer' ? [1, 0] : [0, 1]) : [0, 0], moment)
        t.equal(guest.bodyOf(call).length, hasEnded ? (end === 'answer' ? 3000 : 2000) : guest.bodyOf(call).length, moment)
        // Of a tee, the other half may still be read.
        t.equal(count(guest, 'canceled'), hasEnded || way === 'half of a tee' ? 0 : 1, moment)
        t.equal(count(guest, 'pull'), pulls, moment)
        t.equal(guest.lines.filter((line) => line.startsWith('error')).length, 0, moment)
        seen.add(hasEnded ? 'ended' : 'left')
        guest.isolate.dispose()
      }
      t.end()
    })
  }
}

t.test('The reason is that of request.signal, which is aborted first', (t) => {
  const guest = guestOf(`${SOURCE}
    request.signal.addEventListener('abort', () => console.log('aborted'))
    const cancel = (reason) => console.log(reason === request.signal.reason, request.signal.aborted, reason.name)
    return new Response(source(5, { cancel }))`)
  const call = guest.start()
  guest.cancel(call)
  t.same(guest.lines, ['info: pull', 'info: aborted', 'info: true true AbortError'])
  t.end()
})

t.test('request.signal is aborted in every phase before the answer, and not after it', (t) => {
  const guest = guestOf(`${SOURCE}
    const phase = new URL(request.url).pathname
    const late = (async () => { await waitFor(50); console.log('late', request.signal.aborted) })()
    ctx.waitUntil(late)
    if (phase !== '/late') request.signal.addEventListener('abort', () => console.log('aborted'))
    if (phase === '/before' || phase === '/late') await new Promise(() => {})
    return new Response(phase === '/collected' ? source(5) : 'whole')`)
  const logged = (path: string): string[] => {
    guest.logs.length = 0
    const call = guest.start({ url: `http://localhost${path}` })
    guest.cancel(call)
    fireTimers(guest)
    return guest.lines
  }
  t.same(logged('/before'), ['info: aborted', 'info: late true'])
  t.same(logged('/late'), ['info: late true'])
  t.same(logged('/collected'), ['info: pull', 'info: aborted', 'info: canceled AbortError', 'info: late true'])
  t.same(logged('/answered'), ['info: late false'])
  t.end()
})

t.test('A response that comes when the client has left is not read', (t) => {
  const guest = guestOf(`${SOURCE}; await waitFor(5); return new Response(source())`)
  const call = guest.start()
  guest.cancel(call)
  fireTimers(guest)
  t.same(guest.lines, ['info: canceled AbortError'])
  t.end()
})

t.test('A response that is refused is not read', (t) => {
  const guest = guestOf(`${SOURCE}; const headers = new Headers(); for (let i = 0; i < 101; i++) headers.append('a', '1')
    return new Response(source(), { headers })`)
  t.match(guest.callToFail(), { outcome: 'invalid-response', message: /101 headers/ })
  t.same(guest.lines, ['info: canceled TypeError'])
  t.end()
})

t.test('What cancel() throws is logged, and changes nothing', (t) => {
  for (const cancel of [`cancel() { throw new Error('mine') }`, `async cancel() { throw new Error('mine') }`]) {
    const guest = guestOf(
      `${SOURCE}; if (request.url.endsWith('/next')) return new Response('next'); return new Response(source(5, { ${cancel} }))`,
    )
    const call = guest.start()
    guest.cancel(call)
    t.match(guest.lines, ['info: pull', /^error: Uncaught error in cancel\(\) of a stream: Error: mine\n/])
    t.equal(guest.lines.length, 2)
    t.same(guest.canceled, [call])
    t.equal(guest.call({ url: 'http://localhost/next' }).body, 'next')

    const pull = `pull(controller) { controller.enqueue('text') }`
    const long = guestOf(`${SOURCE}; return new Response(source(undefined, { ${pull}, ${cancel} }))`)
    t.match(long.callToFail(), { outcome: 'exception', message: /chunks of type Uint8Array/ })
    t.match(long.lines.at(-1), /^error: Uncaught error in cancel\(\) of a stream: Error: mine\n/)
  }
  t.end()
})

t.test('A cancel() that never resolves holds up nothing', (t) => {
  const source = `{ pull(controller) { controller.enqueue('text') }, cancel: () => new Promise(() => {}) }`
  const guest = guestOf(`return new Response(new ReadableStream(${source}))`)
  t.match(guest.callToFail(), { outcome: 'exception' })
  t.end()
})

t.test('A stream that errors midway is an exception, and is not canceled', (t) => {
  const body = `${SOURCE}; let left = 3
    const pull = (controller) => { if (left-- > 0) controller.enqueue(chunk()); else controller.error(new Error('dry')) }
    return new Response(source(undefined, { pull }))`
  const guest = guestOf(body, LIMIT)
  t.match(guest.callToFail(), { outcome: 'exception', message: 'Error: dry' })
  t.same(guest.lines, [])
  t.end()
})

t.test('A chunk that is no Uint8Array is an exception, and cancels the stream', (t) => {
  for (const wrong of [
    `'text'`,
    'new ArrayBuffer(4)',
    'new DataView(new ArrayBuffer(4))',
    'new Uint16Array(2)',
    'null',
    'undefined',
    '5',
    '[1]',
  ]) {
    const guest = guestOf(
      `${SOURCE}; return new Response(source(undefined, { pull: (controller) => controller.enqueue(${wrong}) }))`,
    )
    t.match(
      guest.callToFail(),
      { outcome: 'exception', message: 'TypeError: A body stream must give chunks of type Uint8Array.' },
      wrong,
    )
    t.same(guest.lines, ['info: canceled TypeError'], wrong)
    guest.isolate.dispose()
  }
  t.end()
})

/** Streams whose source does something to the buffer of a chunk that it gave: what was given counts. */
const REUSED: Readonly<Record<string, [source: string, text: string]>> = {
  'changes it': [`if (left < 3) buffer.fill(46); else buffer.fill(120); controller.enqueue(buffer)`, 'xxxx........'],
  'detaches it': [
    `const own = new Uint8Array(4).fill(120); last?.buffer.transfer(); last = own; controller.enqueue(own)`,
    'xxxxxxxxxxxx',
  ],
  'detached it before': [
    `const own = new Uint8Array(4).fill(120); controller.enqueue(own); if (left === 2) own.buffer.transfer()`,
    'xxxxxxxx',
  ],
  'shrinks it': [
    `const own = new Uint8Array(new ArrayBuffer(4, { maxByteLength: 8 })).fill(120)
      last?.buffer.resize(1); last = own; controller.enqueue(own)`,
    'xxxxxxxxxxxx',
  ],
}

for (const [title, [pull, text]] of Object.entries(REUSED)) {
  t.test(`A source may use a buffer again: it ${title}`, (t) => {
    const stream = `let left = 3, last; const buffer = new Uint8Array(4)
      const pull = (controller) => { if (left === 0) return controller.close(); ${pull}; left-- }
      const stream = new ReadableStream({ pull }, { highWaterMark: 0 })`
    t.equal(guestOf(`${stream}; return new Response(stream)`).call().body, text)
    t.equal(guestOf(`${stream}; return new Response(await new Response(stream).text())`).call().body, text)
    t.end()
  })
}

t.test('Of a chunk its own bytes are kept, not the buffer that it is a part of', (t) => {
  const PARTS = 200
  const guest = guestOf(`let left = ${PARTS}
    return new Response(new ReadableStream({ pull(controller) {
      if (left-- === 0) return controller.close()
      controller.enqueue(new Uint8Array(2 ** 20).fill(120).subarray(0, 1))
    } }))`)
  t.equal(guest.call().body, 'x'.repeat(PARTS))
  t.end()
})

t.test('A stream that is always ready lets others in, and its own end', (t) => {
  const guest = guestOf(`${SOURCE}; if (request.url.endsWith('/next')) return new Response('next')
    const pull = (controller) => controller.enqueue(new Uint8Array(request.url.endsWith('/empty') ? 0 : 1))
    return new Response(source(undefined, { pull }))`)
  for (const path of ['/', '/empty']) {
    guest.logs.length = 0
    const call = guest.start({ url: `http://localhost${path}` })
    t.equal(guest.call({ url: 'http://localhost/next' }).body, 'next')
    fireTimers(guest, 3)
    t.same(guest.lines, [])
    t.equal(guest.timers.size, 1)
    guest.cancel(call)
    t.same(guest.lines, ['info: canceled AbortError'])
    fireTimers(guest)
    t.equal(guest.timers.size, 0)
  }
  t.end()
})

t.test('Of the answer to a HEAD nothing streams', (t) => {
  const guest = guestOf(`${SOURCE}; return new Response(source(), { headers: { a: 'b' } })`)
  t.match(guest.call({ method: 'HEAD' }), { status: 200, headers: [['a', 'b']], kind: 'none' })
  t.same(guest.lines.slice(-1), ['info: canceled TypeError'])
  t.end()
})

t.test('A stream of many chunks is whole', (t) => {
  const guest = guestOf(`let left = 1000
    const pull = (to) => { if (left-- === 0) to.close(); else to.enqueue(new Uint8Array([left & 0xff])) }
    return new Response(new ReadableStream({ pull }))`)
  const call = guest.start()
  fireTimers(guest)
  t.equal(guest.bodyOf(call), Array.from({ length: 1000 }, (_, index) => String.fromCharCode((999 - index) & 0xff)).join(''))
  t.same(guest.streamOf(OF_CALL, call).parts, [256, 256, 256, 232], 'what one entry gives is one part')
  t.same(guest.endedAnswers, [call])
  t.end()
})

t.test('The body of a fetch leaves as fast as it is taken', (t) => {
  const guest = guestOf(
    `${SOURCE}
      let left = 100
      const pull = (to) => { if (left-- === 0) to.close(); else { console.log('pull'); to.enqueue(new Uint8Array(10_000)) } }
      const { status } = await fetch('http://up/', { method: 'POST', body: source(undefined, { pull }) })
      return new Response(null, { status })`,
  )
  const call = guest.start()
  t.match(guest.fetches.get(1), { kind: 'stream', body: '' })
  t.equal(count(guest, 'pull'), 27, 'a window')
  t.equal(guest.streamOf(OF_FETCH, 1).body.length, 0, 'nothing leaves before the host says so')
  guest.streamCredit(OF_FETCH, 1, STREAM_WINDOW_BYTES)
  t.equal(guest.streamOf(OF_FETCH, 1).body.length, STREAM_WINDOW_BYTES)
  for (let times = 0; times < 3; times++) guest.streamCredit(OF_FETCH, 1, STREAM_WINDOW_BYTES)
  t.equal(guest.streamOf(OF_FETCH, 1).body.length, 1_000_000)
  t.ok(guest.streamOf(OF_FETCH, 1).hasEnded)
  guest.settleFetch(1, { ok: true, status: 204, statusText: '', headers: [], url: 'http://up/', redirected: false })
  t.equal(guest.answers.get(call)?.status, 204)
  t.end()
})

t.test('A fetch that is aborted while its body is sent rejects at once, and cancels the body', (t) => {
  const guest = guestOf(`${SOURCE}
    const controller = new AbortController()
    const body = source(5, { pull: () => new Promise(() => {}) })
    const sent = fetch('http://up/', { method: 'POST', body, signal: controller.signal })
    controller.abort(new RangeError('enough'))
    const already = fetch('http://up/', { method: 'POST', body: source(), signal: controller.signal })
    return Response.json((await Promise.allSettled([sent, already])).map(({ reason }) => String(reason)))`)
  t.same(JSON.parse(guest.call().body), ['RangeError: enough', 'RangeError: enough'])
  t.same(guest.lines, ['info: canceled RangeError', 'info: canceled RangeError'])
  t.equal(guest.fetches.size, 0)
  t.end()
})

t.test('A fetch whose body is sent when the client leaves rejects', (t) => {
  const guest = guestOf(`${SOURCE}
    const rejected = (error) => console.log('rejected:', String(error))
    ctx.waitUntil(fetch('http://up/', { method: 'POST', body: source(5) }).catch(rejected))
    await new Promise(() => {})`)
  const call = guest.start()
  guest.cancel(call)
  t.same(guest.lines, ['info: pull', 'info: canceled AbortError', 'info: rejected: TypeError: The invocation has ended.'])
  t.end()
})

t.test('After its answer the body of a fetch goes on', (t) => {
  const guest = guestOf(`${SOURCE}; let left = 3
    const pull = async (to) => { await waitFor(5); if (left-- === 0) to.close(); else to.enqueue(chunk()) }
    fetch('http://up/', { method: 'POST', body: source(5, { pull }) })
    return new Response('done')`)
  const call = guest.start()
  t.equal(guest.answers.get(call)?.body, 'done')
  guest.cancel(call)
  guest.streamCredit(OF_FETCH, 1, STREAM_WINDOW_BYTES)
  fireTimers(guest)
  t.match(guest.streamOf(OF_FETCH, 1), { body: 'x'.repeat(3000), hasEnded: true })
  t.end()
})

t.test('The body of the request may flow through the response', (t) => {
  const guest = guestOf(`return new Response(request.body.pipeThrough(new TransformStream({
    async transform(chunk, controller) { await new Promise((resolve) => setTimeout(resolve, 5)); controller.enqueue(chunk) },
    cancel(reason) { console.log('canceled', reason.name) },
  })))`)
  const first = guest.start({ method: 'POST', bodyKind: 'text', body: 'echo' })
  fireTimers(guest)
  t.equal(guest.bodyOf(first), 'echo')
  const second = guest.start({ method: 'POST', bodyKind: 'text', body: 'echo' })
  guest.cancel(second)
  fireTimers(guest)
  t.same(guest.lines, ['info: canceled AbortError'])
  t.end()
})
