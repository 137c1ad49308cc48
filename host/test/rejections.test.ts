/** Promises that nobody awaits, from V8's news of them to the log and to what the function's modules do behind an entry. */
import t from 'tap'
import { inProcessHost, type InProcessHost } from './support/in-process-host.ts'

const REVISION = 'rejects'

const linesOf = (host: InProcessHost): string[] =>
  host.sent.filter(({ message }) => message.type === 'log').map(({ text }) => text.split('\n')[0]!)

t.test('a rejection that nobody awaits is a line of the log, and one that is awaited is none', async (t) => {
  const host = await inProcessHost()
  host.load(
    REVISION,
    `Promise.reject(new Error('lost')); Promise.reject(new Error('found')).catch(() => {}); return new Response()`,
  )
  await host.endOf(host.invoke(REVISION))
  // The answer may have left while the entry that gave it ran on.
  await host.until(() => linesOf(host).length > 0)
  t.strictSame(linesOf(host), ['Uncaught rejection of a promise: Error: lost'])
})

t.test('what modules do behind an entry they do behind listeners for rejections as well', async (t) => {
  const host = await inProcessHost()
  host.load(
    REVISION,
    `let waits = false
     carpoolSupport_.afterTurn(() => { if (waits) console.log('behind'); waits = false })
     onunhandledrejection = (event) => { event.preventDefault(); waits = true; queueMicrotask(() => console.log('microtask')) }
     Promise.reject(1)
     return new Response()`,
  )
  await host.endOf(host.invoke(REVISION))
  await host.until(() => linesOf(host).length > 1)
  t.strictSame(linesOf(host), ['behind', 'microtask'])
})

t.test('what V8 says of code is cut where it quotes too much of it', async (t) => {
  const host = await inProcessHost()
  const name = 'b'.repeat(2 ** 20)
  host.load(REVISION, `let ${name}; let ${name}`)
  const { message } = await host.endOf(host.invoke(REVISION))
  t.match(message, { type: 'failed', outcome: 'load-failed', stack: /more characters\)$/ })
  t.ok((message as unknown as { stack: string }).stack.length < 20_000)
})
