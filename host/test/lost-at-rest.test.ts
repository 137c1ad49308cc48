import t from 'tap'
import { inProcessHost } from './support/in-process-host.ts'

const MIB = 1024 * 1024

// V8 finds the passed limit in the next garbage collection, which may come behind the batch that took the memory, or behind a look at it.
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
