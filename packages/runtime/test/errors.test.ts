import { OF_CALL, OF_SOCKET, OWNER_MASK, SAYS } from '@carpool/runtime'
import t from 'tap'
import { Guest, guestOf } from './support/guest.ts'

function failureOf(body: string): { outcome: string; message: string; stack: string } {
  const guest = guestOf(body)
  try {
    return guest.callToFail()
  } finally {
    guest.isolate.dispose()
  }
}

t.test('Anything that is thrown can be told', (t) => {
  const cases: [string, string][] = [
    ['"text"', "Uncaught 'text'"],
    ['42', 'Uncaught 42'],
    ['null', 'Uncaught null'],
    ['undefined', 'Uncaught undefined'],
    ['Symbol("s")', 'Uncaught Symbol(s)'],
    ['{ code: 1 }', 'Uncaught { code: 1 }'],
    ['new DOMException("d", "DataError")', 'DataError: d'],
    ['new (class Odd extends Error { name = "Odd" })("o")', 'Odd: o'],
    ['Object.assign(new Error("e"), { name: 5 })', 'Error: e'],
    ['Object.create(Error.prototype, { message: { value: "old" } })', 'Error: old'],
    ['new AggregateError([new Error("a")], "many")', 'AggregateError: many'],
  ]
  for (const [thrown, message] of cases) t.match(failureOf(`throw ${thrown}`), { outcome: 'exception', message }, thrown)
  t.end()
})

t.test('Errors that resist are told as far as they go', (t) => {
  const getters = `const error = new Error(); for (const key of ['name', 'message', 'stack', 'cause']) Object.defineProperty(error, key, { get() { throw new Error('trap') } }); throw error`
  t.same(failureOf(getters), { outcome: 'exception', message: 'Error', stack: 'Error' })
  t.match(failureOf(`throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })`), {
    message: 'Error: the error could not be described',
  })
  t.match(failureOf(`throw Object.assign(new Error('m'), { stack: { toString: null } })`), {
    message: 'Error: m',
    stack: 'Error: m',
  })
  t.match(failureOf(`Error.prepareStackTrace = () => { throw new Error('p') }; throw new Error('m')`), {
    message: /^Error: [mp]$/,
  })
  t.match(failureOf(`Error.prepareStackTrace = () => ({}); throw new Error('m')`), { message: 'Error: m', stack: 'Error: m' })
  t.match(failureOf(`const error = new Error('loop'); error.cause = error; throw error`), { message: 'Error: loop' })
  t.match(failureOf(`const deep = () => deep(); deep()`), { message: 'RangeError: Maximum call stack size exceeded' })
  t.end()
})

t.test('Long messages and stacks are cut', (t) => {
  const { message, stack } = failureOf(`throw new Error('x'.repeat(1_000_000))`)
  t.equal(message.length, 2048 + '… (997959 more characters)'.length)
  t.ok(stack.length < 8300)
  const other = failureOf(`const error = new Error('y'); error.stack = 'z'.repeat(100_000); throw error`)
  t.ok(other.stack.length < 8300)
  t.ok(failureOf(`throw 'w'.repeat(100_000)`).message.length < 2100)
  t.end()
})

t.test('A message that was changed after the error was made heads the stack', (t) => {
  const { stack } = failureOf(`const error = new Error('before'); error.message = 'after'; throw error`)
  t.match(stack, /^Error: after\n {4}at /)
  t.end()
})

t.test('The causes of an error are part of its stack', (t) => {
  const { stack } = failureOf(`throw new Error('a', { cause: new Error('b', { cause: { c: 1 } }) })`)
  t.match(stack, /^Error: a\n[^]*\nCaused by: Error: b\n[^]*\nCaused by: \{ c: 1 \}$/)
  t.end()
})

t.test('What modules leave for the end of an entry runs behind its microtasks, and what it throws is logged', (t) => {
  const guest = new Guest().load(
    `{ default: { fetch: async () => {
      const order = []
      carpoolSupport_.afterEntry(() => { throw new Error('first') })
      carpoolSupport_.afterEntry(() => order.push('end'))
      for (let turn = 0; turn < 10; turn++) await null
      order.push('goes on')
      await new Promise((resolve) => setTimeout(resolve))
      return new Response(order.join())
    } } }`,
  )
  const call = guest.start()
  guest.fireTimer([...guest.timers.keys()][0]!)
  t.equal(guest.answers.get(call)?.body, 'goes on,end')
  t.match(guest.lines, [/^error: Uncaught error at the end of an entry: Error: first/])
  guest.isolate.dispose()
  t.end()
})

t.test('Each end runs with its microtasks, and what it leaves for an end waits for the next entry', (t) => {
  const guest = new Guest().load(
    `{ default: { fetch: async () => {
      const order = []
      const again = () => {
        order.push('again')
        console.log(order.length)
        carpoolSupport_.afterEntry(again)
      }
      carpoolSupport_.afterEntry(() => {
        order.push('first')
        Promise.resolve().then(() => order.push('of first'))
        again()
      })
      carpoolSupport_.afterEntry(() => order.push('second'))
      await new Promise((resolve) => setTimeout(resolve))
      return new Response(order.join())
    } } }`,
  )
  const call = guest.start()
  const [timer, next] = [...guest.timers.keys()]
  guest.fireTimer(timer!)
  t.equal(guest.answers.get(call)?.body, 'first,again,of first,second')
  t.strictSame(guest.lines, ['info: 2'])
  guest.fireTimer(next!)
  t.strictSame(guest.lines, ['info: 2', 'info: 5', 'info: 6'])
  t.equal(guest.timers.has(next!), false, 'it has gone in')
  t.equal(guest.timers.size, 1, 'and waits for an entry again')
  guest.isolate.dispose()
  t.end()
})

t.test('An end that could not be asked for where the stack ends is asked for by who comes next', (t) => {
  const guest = new Guest().load(
    `{ default: { fetch: async () => {
      const dive = () => { try { dive() } catch {} try { carpoolSupport_.afterEntry(() => {}) } catch {} }
      dive()
      await new Promise((resolve) => setTimeout(resolve))
      carpoolSupport_.afterEntry(() => console.log('end'))
      return new Response()
    } } }`,
  )
  guest.start()
  guest.fireTimer([...guest.timers.keys()][0]!)
  t.strictSame(guest.lines, ['info: end'])
  guest.isolate.dispose()
  t.end()
})

t.test('What cannot leave at the end of an entry holds up nothing behind it', (t) => {
  const guest = new Guest().load(
    `{ default: { fetch: async () => {
      const events = { connected() {}, data() {}, ended() {}, room() {}, closed: (end) => console.log(JSON.stringify(end)) }
      for (const byte of [65, 66, 67]) {
        carpoolSupport_.openSocket({ kind: 'tcp', host: 'h', port: 1 }, events).send(new Uint8Array([byte]))
        if (byte === 66) carpoolSupport_.afterEntry(() => console.log('end'))
      }
      const stopped = carpoolSupport_.openSocket({ kind: 'tcp', host: 'h', port: 1 }, events)
      stopped.send(new Uint8Array(1))
      stopped.stop()
      return new Response(new ReadableStream({ start(controller) { controller.enqueue(new Uint8Array([68])) } }))
    } } }`,
  )
  guest.failsToSay = (op, a, c) => op === SAYS.streamData && (a === 1 || a === 4) && (c & OWNER_MASK) === OF_SOCKET
  const call = guest.start()
  t.same(
    [1, 2, 3].map((number) => guest.streamOf(OF_SOCKET, number).body),
    ['', 'B', 'C'],
  )
  t.equal(guest.streamOf(OF_SOCKET, 1).broke, 'It could not be sent.', 'nothing goes on behind a hole')
  t.same(guest.lines, [
    'info: {"ok":false,"code":"ERR_STREAM_DESTROYED","message":"It could not be sent. RangeError: no memory"}',
    'info: end',
  ])
  t.ok(guest.streamOf(OF_SOCKET, 4).broke, 'nor behind one of a socket that is stopped')
  t.equal(guest.bodyOf(call), 'D')
  guest.isolate.dispose()
  t.end()
})

t.test('An answer or a request that cannot be sent fails at once, also if it could not even begin', (t) => {
  const stream = `new ReadableStream({
    pull(controller) { controller.enqueue(new Uint8Array(100)) }, cancel: (error) => console.log('cancel', String(error))
  })`
  const outcome = (body: string, failsToSay: Guest['failsToSay']): unknown => {
    const guest = guestOf(body.replace('STREAM', stream))
    guest.failsToSay = failsToSay
    const call = guest.start()
    guest.isolate.dispose()
    return [guest.failures.get(call)?.message ?? guest.answers.get(call)?.body, guest.lines]
  }
  const answer = 'return new Response(STREAM)'
  for (const op of [SAYS.answerHead, SAYS.streamData]) {
    t.same(
      outcome(answer, (said, _, c) => said === op && (c & OWNER_MASK) === OF_CALL),
      ['RangeError: no memory', ['info: cancel RangeError: no memory']],
    )
  }
  const whole = 'return new Response(new ReadableStream({ start: (controller) => controller.close() }))'
  t.same(
    outcome(whole, (said) => said === SAYS.answer),
    ['RangeError: no memory', []],
  )
  t.same(
    outcome(
      `return new Response(await fetch('http://a.test', { method: 'POST', body: STREAM, duplex: 'half' }).catch(String))`,
      (said) => said === SAYS.startFetch,
    ),
    ['TypeError: The request could not be sent: RangeError: no memory', ['info: cancel RangeError: no memory']],
  )
  t.end()
})

t.test('What modules throw at the end of an entry is logged, and never reaches the host as it is', (t) => {
  const guest = new Guest().load(
    `(carpoolSupport_.afterTurn(() => { throw new Error('b'.repeat(2 ** 24)) }), { default: { fetch: () => new Response('answer') } })`,
  )
  t.match(guest.loaded, { ok: true })
  t.equal(guest.call().body, 'answer')
  t.equal(guest.logs.length, 2)
  for (const { text } of guest.logs) {
    t.match(text, /^Uncaught error at the end of an entry: Error: b/)
    t.ok(text.length < 10_000, `${text.length} characters`)
  }
  guest.isolate.dispose()
  t.end()
})
