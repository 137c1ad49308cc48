import t from 'tap'
import { guestOf } from './support/guest.ts'

t.test('A timer is armed with its delay and fires once, with its arguments', (t) => {
  const guest = guestOf(`setTimeout((a, b) => console.log(a, b), 25, 'x', 1); return new Response()`)
  guest.call()
  t.same([...guest.timers], [[1, 25]])
  guest.fireTimer(1)
  guest.fireTimer(1)
  t.same(guest.lines, ['info: x 1'])
  t.end()
})

t.test('Delays that make no sense are 0', (t) => {
  const guest = guestOf(
    `for (const delay of [undefined, -1, NaN, 'x', 2 ** 31, 2 ** 31 - 1, '7', 0.5]) setTimeout(() => {}, delay); return new Response()`,
  )
  guest.call()
  t.same([...guest.timers.values()], [0, 0, 0, 0, 0, 2 ** 31 - 1, 7, 0.5])
  t.end()
})

t.test('A timer fires on behalf of the invocation that started it', (t) => {
  const guest = guestOf(
    `setTimeout(() => { console.log('fired'); setTimeout(() => console.log('again')) }); return new Response()`,
  )
  guest.call()
  guest.call()
  guest.fireTimer(1)
  guest.fireTimer(2)
  guest.fireTimer(3)
  t.same(
    guest.logs.map(({ invocation, text }) => [invocation, text]),
    [
      [1, 'fired'],
      [2, 'fired'],
      [1, 'again'],
    ],
  )
  t.end()
})

t.test('An interval is armed again after each call, until it is cleared', (t) => {
  const guest = guestOf(
    `let count = 0; const id = setInterval(() => { console.log(++count); if (count === 2) clearInterval(id) }, 5); return new Response()`,
  )
  guest.call()
  guest.fireTimer(1)
  t.same([...guest.timers], [[1, 5]])
  guest.fireTimer(1)
  t.same([...guest.timers], [])
  t.same(guest.lines, ['info: 1', 'info: 2'])
  t.same(guest.stoppedTimers, [1])
  t.end()
})

t.test('A cleared timer is stopped at the host and never fires', (t) => {
  const guest = guestOf(
    `const id = setTimeout(() => console.log('no'), 5); clearTimeout(String(id)); clearTimeout(id); clearTimeout(); clearTimeout({}); return new Response()`,
  )
  guest.call()
  t.same(guest.stoppedTimers, [1])
  guest.fireTimer(1)
  t.same(guest.lines, [])
  t.end()
})

t.test('setImmediate is a timer without delay', (t) => {
  const guest = guestOf(`clearImmediate(setImmediate(() => {})); setImmediate(console.log, 'now'); return new Response()`)
  guest.call()
  guest.fireTimer(2)
  t.same(guest.lines, ['info: now'])
  t.end()
})

t.test('An error in a timer is logged, and an interval goes on', (t) => {
  const guest = guestOf(`setInterval(() => { throw new Error('oops') }, 1); return new Response()`)
  guest.call()
  guest.fireTimer(1)
  t.match(guest.logs, [{ invocation: 1, level: 'error', text: /^Uncaught error in a timer: Error: oops\n {4}at/ }])
  t.same([...guest.timers], [[1, 1]])
  t.end()
})

t.test('A timer needs a function', (t) => {
  t.match(guestOf(`setTimeout('code')`).callToFail(), { message: 'TypeError: The callback of a timer must be a function.' })
  t.end()
})

t.test('Microtasks run before the entry ends, and their errors are logged', (t) => {
  const guest = guestOf(`
    queueMicrotask(() => console.log('micro'))
    queueMicrotask(() => { throw new Error('in micro') })
    console.log('sync')
    return new Response()`)
  guest.call()
  t.match(guest.lines, ['info: sync', 'info: micro', /^error: Uncaught error in a microtask: Error: in micro/])
  t.end()
})

t.test('reportError writes to the log', (t) => {
  const guest = guestOf(`reportError(new Error('told')); return new Response()`)
  guest.call()
  t.match(guest.lines, [/^error: Uncaught error: Error: told/])
  t.end()
})

t.test('A function can have so many timers open and no more, until some have ended', (t) => {
  const guest = guestOf(`
    const open = () => setTimeout(() => {}, 1e6)
    for (let count = 0; count < 50_000; count++) open()
    for (const start of [open, () => setInterval(() => {}), () => setImmediate(() => {})]) {
      try { start(); return new Response('started') } catch (error) { console.log(String(error)) }
    }
    clearTimeout(7)
    open()
    return new Response('opened')`)
  t.equal(guest.call().body, 'opened')
  t.same(new Set(guest.lines), new Set(['info: RangeError: A function can have 50000 timers open at the same time, not more.']))
  guest.fireTimer(8)
  guest.fireTimer(9)
  t.equal(guest.timers.size, 49_998)
  t.end()
})

t.test('A timer that is refreshed counts among the open ones', (t) => {
  const guest = guestOf(`
    const fired = setTimeout(() => {}, 0)
    globalThis.go = () => {
      for (let count = 0; count < 50_000; count++) setTimeout(() => {}, 1e6)
      try { fired.refresh() } catch (error) { console.log(String(error)) }
    }
    setTimeout(() => globalThis.go())
    return new Response()`)
  guest.call()
  guest.fireTimer(1)
  guest.fireTimer(2)
  t.same(guest.lines, ['info: RangeError: A function can have 50000 timers open at the same time, not more.'])
  t.equal(guest.timers.size, 50_000)
  t.end()
})

t.test('A timeout that was cleared stays so, whatever refreshes it', (t) => {
  const guest = guestOf(`
    const timer = setTimeout(() => console.log('no'), 5)
    clearTimeout(timer)
    timer.refresh()
    const fired = setTimeout(() => { clearTimeout(fired); fired.refresh() }, 5)
    return new Response()`)
  guest.call()
  t.same([...guest.timers], [[2, 5]])
  guest.fireTimer(2)
  t.same([...guest.timers], [])
  t.end()
})

t.test('An interval that refreshes itself is armed once', (t) => {
  const guest = guestOf(`const id = setInterval(() => id.refresh(), 5); return new Response()`)
  guest.call()
  guest.fireTimer(1)
  guest.fireTimer(1)
  t.same(guest.startedTimers, [1, 1, 1])
  t.same([...guest.timers], [[1, 5]])
  t.end()
})
