import t from 'tap'
import { inProcessHost } from './support/in-process-host.ts'

const HANDLER = `
  const path = new URL(request.url).pathname
  if (path === '/loop') { console.log('loops'); for (;;); }
  if (path === '/log') console.log('log of', request.headers.get('x') ?? await request.text())
  return new Response(path)`

t.test('a batch in which one entry never ends holds up nobody, and costs nobody his answer', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER, { cpuMs: 100 })
  await host.warmUp('rev')
  // The first goes in alone; those that come meanwhile share the next batch.
  const warm = host.invoke('rev')
  const [first, second, loop, fourth, fifth] = ['/1', '/2', '/loop', '/4', '/5'].map((path) => host.invoke('rev', path)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  await host.endOf(warm)
  t.same([await host.answerOf(first), await host.answerOf(second)], ['/1', '/2'])
  t.notOk(
    host.sent.some(({ message }) => message.type === 'failed'),
    'their answers have left while the loop runs',
  )
  const ended = await host.endOf(loop)
  t.match(ended.message, { type: 'failed', outcome: 'cpu-exceeded' })
  t.same([await host.answerOf(fourth), await host.answerOf(fifth)], ['/4', '/5'])
  for (const invocation of [first, second]) {
    const cpuUs = await host.cpuUsOf(invocation)
    t.ok(cpuUs > 0 && cpuUs < 50_000, `${cpuUs} µs`)
  }
  const loopUs = await host.cpuUsOf(loop)
  t.ok(loopUs >= 100_000 && loopUs <= 160_000, `${loopUs} µs`)
  t.match((await host.endOf(fourth)).message, { start: 'isolate-cold' }, 'they have begun again, in another isolate')
  t.same(
    host.sent.filter(({ message }) => message.type === 'log').map(({ text }) => text),
    ['loops'],
  )
})

t.test('what a function says arrives in the order in which it said it, and before its answer', async (t) => {
  const host = await inProcessHost()
  host.load('rev', `for (let i = 0; i < 3; i++) console.log(++calls, i); return new Response(String(calls))`)
  await host.warmUp('rev')
  host.sent.length = 0
  const calls = Array.from({ length: 40 }, () => host.invoke('rev'))
  await Promise.all(calls.map((call) => host.answerOf(call)))
  const lines = host.sent.filter(({ message }) => message.type === 'log')
  const numbers = lines.map(({ text }) => Number.parseInt(text, 10))
  t.equal(lines.length, 120)
  t.ok(numbers.every((number, index) => index === 0 || number === numbers[index - 1]! + 1))
  for (const call of calls) {
    const answered = host.sent.findIndex(({ message }) => message.type === 'answer' && message.invocation === call)
    const logged = host.sent.findLastIndex(({ message }) => message.type === 'log' && message.id === `id-${call}`)
    t.ok(logged >= 0 && logged < answered)
  }
})

t.test('what waits to be heard has a bound, in the middle of an entry too', async (t) => {
  const host = await inProcessHost()
  const mib = 1024 * 1024
  // The log of a function has a budget; what it fetches has not.
  host.load(
    'rev',
    `for (let i = 0; i < 200; i++) fetch('http://up/', { method: 'POST', body: 'x'.repeat(${mib} / 8) }).catch(() => {}); return new Response('done')`,
  )
  t.equal(await host.answerOf(host.invoke('rev')), 'done')
  const fetches = host.sent.filter(({ message }) => message.type === 'fetch')
  t.equal(fetches.length, 200)
  const times = new Set(fetches.map(({ atMs }) => Math.round(atMs * 100)))
  t.ok(times.size >= 25, `heard at ${times.size} times`)
})

t.test('texts of all kinds and sizes come back as they went in', async (t) => {
  const host = await inProcessHost()
  host.load('rev', `const text = await request.text(); console.log(text.length); return new Response(text)`, { memoryMb: 256 })
  const texts = ['', 'plain', 'é', '€ 👍', 'x'.repeat(6 * 1024 * 1024), '€'.repeat(2 * 1024 * 1024)]
  const calls = texts.map((text) => host.invoke('rev', '/', text))
  for (const [index, call] of calls.entries())
    t.ok((await host.answerOf(call)) === texts[index], `${texts[index]!.length} characters`)
})

t.test('answers of an isolate that passes its memory limit count if they were given before', async (t) => {
  const host = await inProcessHost()
  host.load(
    'rev',
    `const path = new URL(request.url).pathname
     if (path === '/hoard') { const kept = []; for (;;) kept.push({ kept }) }
     return new Response(path)`,
    { memoryMb: 32, cpuMs: 20_000 },
  )
  await host.warmUp('rev')
  const warm = host.invoke('rev')
  const [first, hoard, last] = ['/1', '/hoard', '/3'].map((path) => host.invoke('rev', path)) as [number, number, number]
  await host.endOf(warm)
  t.match(await host.endOf(first), { message: { type: 'answer', start: 'warm' }, body: '/1' })
  t.match((await host.endOf(hoard)).message, { type: 'failed', outcome: 'memory-exceeded' })
  t.match(await host.endOf(last), { message: { type: 'answer', start: 'isolate-cold' }, body: '/3' })
})

const MIB = 1024 * 1024

// V8 finds the passed limit in the next garbage collection, which may come behind the batch that took the memory, or behind a
// look at it.
t.test('a function that keeps what it fetches ends at its memory limit, whenever that is found', async (t) => {
  const host = await inProcessHost()
  const fill = 'const kept = []; for (let i = 0; i < 22; i++) kept.push(new Array(131072).fill(i + 0.5)); globalThis.kept = kept'
  host.load('keeps', `${fill}; const all = []; for (;;) all.push(await (await fetch('http://x/')).text())`, {
    memoryMb: 32,
    wallMs: 60_000,
  })
  const head = { ok: true, status: 200, statusText: 'OK', url: 'http://x/', redirected: false, headers: [] }
  const body = Buffer.alloc(5 * MIB, 'x')
  host.onSent(({ message }) => {
    if (message.type !== 'fetch') return
    const settled = { type: 'fetch-settled', fetch: message.fetch, bytesOut: 0, bytesIn: body.length } as const
    setImmediate(() => host.host.receive(settled, JSON.stringify(head), body))
  })
  for (let round = 0; round < 5; round++) {
    const { message } = await host.endOf(host.invoke('keeps'))
    t.match(message, { type: 'failed', outcome: 'memory-exceeded' })
  }
})
