/** What streams of responses that nobody waits for cost the other calls in their isolate: nothing. */
import { STREAM_PART_BYTES, STREAM_WINDOW_BYTES } from '@carpool/core'
import t from 'tap'
import { inProcessHost, type InProcessHost } from './support/in-process-host.ts'

const CLIENTS = 200

/** `/stream` is endless, `/ready` too and never waits, `/beside` has an effect outside and waits, so it cannot be begun again. */
const HANDLER = `
  const { pathname } = new URL(request.url)
  const counts = (globalThis.counts ??= { begun: 0, pulled: 0, canceled: 0 })
  const waitFor = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const cancel = () => { counts.canceled++; console.log('canceled') }
  const start = () => { counts.begun++ }
  const answer = (pull) => new Response(new ReadableStream({ start, pull, cancel }, { highWaterMark: 0 }))
  switch (pathname) {
    case '/stream':
      return answer(async (controller) => { counts.pulled++; await waitFor(1); controller.enqueue(new Uint8Array(1000)) })
    case '/ready':
      return answer((controller) => { counts.pulled++; controller.enqueue(new Uint8Array(0)) })
    case '/large':
      return answer((controller) => { counts.pulled++; controller.enqueue(new Uint8Array(2 ** 20)) })
    case '/beside':
      console.log('has begun')
      for (let count = 0; count < 200; count++) await waitFor(1)
      return new Response('fine')
  }
  return Response.json(counts)`

interface Counts {
  readonly begun: number
  readonly pulled: number
  readonly canceled: number
}

async function countsOf(host: InProcessHost, until: (counts: Counts) => boolean): Promise<Counts> {
  for (;;) {
    const counts = JSON.parse(await host.answerOf(host.invoke('rev', '/counts'))) as Counts
    if (until(counts)) return counts
  }
}

t.test('two hundred clients of endless streams leave, and cost the calls beside them nothing', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER, { cpuMs: 200, concurrency: 500 })
  const streams = Array.from({ length: CLIENTS }, () => host.invoke('rev', '/stream'))
  const beside = Array.from({ length: 5 }, () => host.invoke('rev', '/beside'))
  await countsOf(host, ({ begun, pulled }) => begun === CLIENTS && pulled >= 2 * CLIENTS)
  for (const invocation of streams) host.cancel(invocation)
  for (const invocation of streams) t.match((await host.endOf(invocation)).message, { type: 'failed', outcome: 'canceled' })
  const atEnd = await countsOf(host, ({ canceled }) => canceled === CLIENTS)
  for (const invocation of beside) t.equal(await host.answerOf(invocation), 'fine')
  t.same(await countsOf(host, () => true), atEnd, 'nothing was pulled meanwhile')
})

t.test('endless streams that reach the stream limit are canceled, and cost the calls after them nothing', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER, { cpuMs: 2_000, streamMs: 1_000, concurrency: 500 })
  const streams = Array.from({ length: 50 }, () => host.invoke('rev', '/stream'))
  const detail = 'The answer took more than the stream limit of 1000 ms.'
  for (const invocation of streams)
    t.match((await host.endOf(invocation)).message, { type: 'failed', outcome: 'timeout', detail })
  const atEnd = await countsOf(host, ({ canceled }) => canceled === streams.length)
  t.equal(await host.answerOf(host.invoke('rev', '/beside')), 'fine')
  t.same(await countsOf(host, () => true), atEnd, 'nothing was pulled meanwhile')
})

t.test('an endless stream that never waits reaches its CPU limit alone', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER, { cpuMs: 200 })
  const canceled = new Promise<void>((resolve) => host.onSent(({ text }) => text === 'canceled' && resolve()))
  const beside = host.invoke('rev', '/beside')
  const ready = host.invoke('rev', '/ready')
  t.match((await host.endOf(ready)).message, { type: 'failed', outcome: 'cpu-exceeded' })
  t.equal(await host.answerOf(beside), 'fine')
  await canceled
})

t.test('of a stream no more is taken than may leave', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER)
  const beside = host.invoke('rev', '/beside')
  const large = host.invoke('rev', '/large')
  await host.until(() => host.bytesOf('call', large) === STREAM_WINDOW_BYTES)
  t.equal(await host.answerOf(beside), 'fine')
  t.same(await countsOf(host, () => true), { begun: 1, pulled: 1, canceled: 0 })
  t.equal(host.bytesOf('call', large), STREAM_WINDOW_BYTES)
  host.credit('call', large, 2 ** 20)
  await host.until(() => host.bytesOf('call', large) === STREAM_WINDOW_BYTES + 2 ** 20)
  t.same(await countsOf(host, ({ pulled }) => pulled === 2), { begun: 1, pulled: 2, canceled: 0 })
  t.ok(host.partsOf('call', large).every(({ bytes }) => bytes.length === STREAM_PART_BYTES))
  host.cancel(large)
  t.match((await host.endOf(large)).message, { type: 'failed', outcome: 'canceled' })
  t.same(await countsOf(host, ({ canceled }) => canceled === 1), { begun: 1, pulled: 2, canceled: 1 })
})
