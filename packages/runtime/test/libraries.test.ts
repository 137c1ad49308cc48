/** What is loaded when it is first touched: that it is there, and what of it is the runtime's own. */
import t from 'tap'
import { guestOf, run } from './support/guest.ts'

t.test('names of libraries are there before they are touched, and can be replaced', (t) => {
  t.same(
    run(`
      const names = ['Blob', 'ReadableStream', 'URLPattern', 'MessageChannel', 'PerformanceObserver', 'TextDecoderStream', 'WeakRef', 'ErrorEvent', 'addEventListener']
      const before = names.map((name) => typeof Object.getOwnPropertyDescriptor(globalThis, name).get)
      const types = names.map((name) => typeof globalThis[name])
      const after = names.map((name) => typeof Object.getOwnPropertyDescriptor(globalThis, name).get)
      globalThis.File = 'mine'
      return [new Set(before), new Set(types), new Set(after), File].map((one) => one instanceof Set ? [...one] : one)`),
    [['function'], ['function'], ['undefined'], 'mine'],
  )
  t.end()
})

t.test('legacy encodings are decoded, also in pieces', (t) => {
  t.same(
    run(`
      const of = (label, bytes, options) => new TextDecoder(label, options).decode(new Uint8Array(bytes))
      const refused = (make) => { try { return make() } catch (error) { return error.name } }
      const pieces = new TextDecoder('shift_jis')
      return [
        of('shift_jis', [0x83, 0x65, 0x83, 0x58]), of('gb18030', [0xb2, 0xe2]), of('big5', [0xb4, 0xfa]), of('euc-kr', [0xc5, 0xd7]), of('koi8-r', [0xd4]), of('iso-8859-2', [0xb1]),
        pieces.decode(new Uint8Array([0x83]), { stream: true }) + pieces.decode(new Uint8Array([0x65])),
        new TextDecoder('SJIS').encoding, refused(() => of('big5', [0xff], { fatal: true })), of('big5', [0xff]), refused(() => new TextDecoder('replacement')), refused(() => new TextDecoder('none')),
        (await Array.fromAsync(new Blob(['ä€']).stream().pipeThrough(new TextDecoderStream()))).join(''),
        await new Response(new Blob(['ä€']).stream().pipeThrough(new TextDecoderStream()).pipeThrough(new TextEncoderStream())).text(),
      ]`),
    ['テス', '测', '測', '테', 'т', 'ą', 'テ', 'shift_jis', 'TypeError', '\ufffd', 'RangeError', 'RangeError', 'ä€', 'ä€'],
  )
  t.end()
})

t.test('a message arrives as a copy, in a turn of its own, ports among it', (t) => {
  const guest = guestOf(`
    const { port1, port2 } = new MessageChannel()
    const other = new MessageChannel()
    const heard = []
    port2.onmessage = ({ data, ports }) => { heard.push(data.a, ports.length); ports[0].postMessage('back') }
    const answered = new Promise((resolve) => { other.port1.onmessage = ({ data }) => resolve(data) })
    const sent = { a: [1] }
    port1.postMessage(sent, [other.port2])
    sent.a.push(2)
    heard.push(heard.length)
    let refused
    try { port1.postMessage(() => {}) } catch (error) { refused = error.name }
    return Response.json([await answered, heard, refused])`)
  const number = guest.start()
  for (let turn = 0; turn < 10 && !guest.answers.has(number); turn++) {
    for (const timer of guest.timers.keys()) guest.fireTimer(timer)
  }
  t.same(JSON.parse(guest.answers.get(number)!.body), ['back', [0, [1], 1], 'DataCloneError'])
  guest.isolate.dispose()
  t.end()
})

t.test('URLPattern and user timing', (t) => {
  t.same(
    run(`
      const found = new URLPattern({ pathname: '/books/:id' }).exec('https://a.test/books/7')
      performance.mark('a', { startTime: 1, detail: { x: 1 } })
      performance.mark('b', { startTime: 3 })
      const measured = performance.measure('m', 'a', 'b')
      performance.clearMarks('a')
      return [found.pathname.groups.id, measured.duration, performance.getEntries().map(({ name }) => name), performance.getEntriesByName('b')[0] instanceof PerformanceMark, performance.mark === performance.mark]`),
    ['7', 2, ['m', 'b'], true, true],
  )
  t.end()
})

t.test('nothing that WeakRef holds or FinalizationRegistry watches is seen collected', (t) => {
  t.same(
    run(`
      const weak = new WeakRef({ a: 1 })
      let called = 0
      const registry = new FinalizationRegistry(() => called++)
      for (let index = 0; index < 1000; index++) registry.register({}, index)
      const refused = (make) => { try { make(); return 'made' } catch (error) { return error.name } }
      return [weak.deref().a, called, registry.unregister({}), Object.prototype.toString.call(weak), refused(() => new WeakRef(1)), refused(() => new FinalizationRegistry()), refused(() => WeakRef({}))]`),
    [1, 0, false, '[object WeakRef]', 'TypeError', 'TypeError', 'TypeError'],
  )
  t.end()
})

t.test('listeners of the global object hear of what nothing caught, and may prevent that it is logged', (t) => {
  const guest = guestOf(`
    const heard = globalThis.heard ??= []
    if (request.url.endsWith('/quiet')) {
      addEventListener('error', (event) => { heard.push([event.target === globalThis, event.error.message]); event.preventDefault() })
      self.onerror = (message) => { heard.push(message); return true }
    }
    reportError(new Error('reported'))
    setTimeout(() => { throw new Error('thrown') })
    return Response.json(heard)`)
  guest.call({ url: 'http://localhost/loud' })
  t.match(guest.lines, [/^error: Uncaught error: Error: reported/])
  guest.logs.length = 0
  t.same(JSON.parse(guest.call({ url: 'http://localhost/quiet' }).body), [[true, 'reported'], 'Uncaught Error: reported'])
  for (const timer of guest.timers.keys()) guest.fireTimer(timer)
  t.same(guest.lines, [])
  guest.isolate.dispose()
  t.end()
})
