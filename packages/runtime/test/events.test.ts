import t from 'tap'
import { guestOf, run } from './support/guest.ts'

t.test('Listeners are called in order, once each, and may be taken back', (t) => {
  t.same(
    run(`
      const target = new EventTarget(); const seen = []
      const first = (event) => seen.push('first ' + event.type + ' ' + (event.target === target) + ' ' + event.eventPhase)
      target.addEventListener('x', first); target.addEventListener('x', first)
      target.addEventListener('x', { handleEvent() { seen.push('object') } }, { once: true })
      target.addEventListener('y', () => seen.push('y'))
      const controller = new AbortController()
      target.addEventListener('x', () => seen.push('signal'), { signal: controller.signal })
      target.dispatchEvent(new Event('x')); controller.abort(); target.dispatchEvent(new CustomEvent('x', { detail: 1 }))
      target.removeEventListener('x', first); target.dispatchEvent(new Event('x'))
      return seen`),
    ['first x true 2', 'object', 'signal', 'first x true 2'],
  )
  t.end()
})

t.test('An event can be stopped, and its default prevented', (t) => {
  t.same(
    run(`
      const target = new EventTarget(); const seen = []
      target.addEventListener('x', (event) => { event.preventDefault(); event.stopImmediatePropagation() })
      target.addEventListener('x', () => seen.push('no'))
      const event = new Event('x', { cancelable: true })
      const passive = new EventTarget(); passive.addEventListener('x', (e) => e.preventDefault(), { passive: true })
      return [target.dispatchEvent(event), event.defaultPrevented, seen, target.dispatchEvent(new Event('x')), passive.dispatchEvent(new Event('x', { cancelable: true })), new CustomEvent('x', { detail: { a: 1 } }).detail]`),
    [false, true, [], true, true, { a: 1 }],
  )
  t.end()
})

t.test('A listener that throws is logged and stops no other', (t) => {
  const guest = guestOf(`
    const target = new EventTarget()
    target.addEventListener('x', () => { throw new Error('bad listener') })
    target.addEventListener('x', () => console.log('next'))
    target.dispatchEvent(new Event('x'))
    return new Response()`)
  guest.call()
  t.match(guest.lines, [/^error: Uncaught error in a listener of "x": Error: bad listener/, 'info: next'])
  t.end()
})

t.test('An AbortController aborts its signal once, with a reason', (t) => {
  t.same(
    run(`
      const controller = new AbortController(); const { signal } = controller; let calls = 0
      signal.onabort = () => calls++
      signal.addEventListener('abort', () => calls++)
      const before = [signal.aborted, signal.reason]
      controller.abort(); controller.abort('again')
      let thrown; try { signal.throwIfAborted() } catch (error) { thrown = error }
      return [before, calls, signal.aborted, signal.reason.name, signal.reason instanceof DOMException, thrown === signal.reason, AbortSignal.abort('r').reason]`),
    [[false, null], 2, true, 'AbortError', true, true, 'r'],
  )
  t.equal(run(`try { new AbortSignal() } catch (error) { return error.name }`), 'TypeError')
  t.end()
})

t.test('AbortSignal.any follows the first of its signals', (t) => {
  t.same(
    run(`
      const one = new AbortController(), two = new AbortController()
      const any = AbortSignal.any([one.signal, two.signal])
      two.abort('two'); one.abort('one')
      return [any.aborted, any.reason, AbortSignal.any([AbortSignal.abort('x'), one.signal]).reason, AbortSignal.any([]).aborted]`),
    [true, 'two', 'x', false],
  )
  t.end()
})

t.test('AbortSignal.timeout aborts when its timer fires', (t) => {
  const guest = guestOf(
    `const signal = AbortSignal.timeout(50); signal.onabort = () => console.log(signal.reason.name); return new Response()`,
  )
  guest.call()
  t.same([...guest.timers], [[1, 50]])
  guest.fireTimer(1)
  t.same(guest.lines, ['info: TimeoutError'])
  t.end()
})

t.test('DOMException has name, message, code and a stack', (t) => {
  t.same(
    run(`
      const error = new DOMException('what', 'AbortError')
      return [error.name, error.message, error.code, DOMException.ABORT_ERR, error instanceof Error, error.stack.split('\\n')[0], new DOMException().name,
        new DOMException('m', { name: 'N', cause: 1 }).cause, Object.hasOwn(error, 'message'), new DOMException('', 'Odd').code, String(error)]`),
    ['AbortError', 'what', 20, 20, true, 'AbortError: what', 'Error', 1, false, 0, 'AbortError: what'],
  )
  t.end()
})
