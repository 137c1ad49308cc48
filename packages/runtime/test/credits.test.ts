import t from 'tap'
import { guestOf } from './support/guest.ts'

t.test('A flood of calls waits for the host again and again', (t) => {
  const floods: Record<string, string> = {
    log: `console.log('x')`,
    timers: `clearTimeout(setTimeout(() => {}, 1e6))`,
    fetches: `fetch('http://up/')`,
    uncaught: `reportError('x')`,
  }
  for (const [name, call] of Object.entries(floods)) {
    const guest = guestOf(`for (let count = 0; count < 2560; count++) ${call}; return new Response()`)
    guest.call()
    t.ok(guest.drainCalls >= 9, name)
  }
  t.end()
})

t.test('Much text in few calls waits for the host too', (t) => {
  const guest = guestOf(`for (let count = 0; count < 100; count++) console.log('x'.repeat(16384)); return new Response()`)
  guest.call()
  t.equal(guest.drainCalls, 3)
  t.end()
})

t.test('Large answers wait for the host, small ones do not', (t) => {
  const guest = guestOf(`return new Response(request.url.endsWith('large') ? 'x'.repeat(400_000) : 'hello')`)
  for (let count = 0; count < 1000; count++) guest.call()
  t.equal(guest.drainCalls, 0)
  for (let count = 0; count < 4; count++) guest.call({ url: 'http://localhost:8080/large' })
  t.equal(guest.drainCalls, 2)
  t.end()
})

t.test('A fetch that is refused for its body waits for the host as if it were sent', (t) => {
  const flood = `for (let count = 0; count < 10; count++) fetch('http://up/', { method: 'POST', body }).catch(() => {})`
  const code = `const body = 'x'.repeat(16 * 1024 * 1024); ${flood}; return new Response()`
  const guest = guestOf(code, { maxBodyBytes: 16 * 1024 * 1024 })
  guest.call()
  t.equal(guest.fetches.size, 2)
  t.equal(guest.drainCalls, 10)
  t.end()
})

t.test('User code cannot make calls uncounted, not even at the end of the stack', (t) => {
  const guest = guestOf(`
    const dive = () => { try { dive() } catch {} try { setTimeout(() => {}, 1e6) } catch {} }
    dive()
    return new Response()`)
  guest.start()
  t.ok(guest.timers.size <= 256 * (guest.drainCalls + 1), `${guest.timers.size} timers, ${guest.drainCalls} drains`)
  t.end()
})

t.test('A guest leaves the host alone for as long as it is told to', (t) => {
  const guest = guestOf(
    `const from = Date.now(); for (let i = 0; i < 300; i++) console.log(); return new Response(Date.now() - from)`,
    { clock: 'running' },
  )
  guest.pauseMs = 50
  t.ok(Number(guest.call().body) >= 50)
  t.end()
})
