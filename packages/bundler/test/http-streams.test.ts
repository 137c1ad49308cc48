/** Servers and clients of `node:http` pass bodies on bit by bit, no faster than they are taken. */
import { STREAM_WINDOW_BYTES } from '@carpool/core'
import { OF_CALL, OF_FETCH, STREAM_FLAGS } from '../../runtime/src/bridge.ts'
import t, { type Test } from 'tap'
import { bundleFunction } from '../src/index.ts'
import { Guest } from '../../runtime/test/support/guest.ts'

/** Its handler is the global `handle`. */
const SOURCE = `
  import http from 'node:http'
  import { Transform, pipeline } from 'node:stream'
  export default http.createServer((req, res) => handle(req, res, http, Transform, pipeline))`

let bundled: ReturnType<typeof bundleFunction> | undefined

async function guestOf(t: Pick<Test, 'testdir'>, handler: string): Promise<Guest> {
  bundled ??= bundleFunction(t.testdir({ 'index.mjs': SOURCE }))
  const { code } = await bundled
  const handle = `globalThis.handle = (req, res, http, Transform, pipeline) => { ${handler} }`
  const guest = new Guest().load(`(${handle}, (${code.trim().replace(/;$/, '')})(carpoolSupport_))`)
  if (guest.loaded?.['ok'] !== true) throw new Error(JSON.stringify(guest.loaded))
  return guest
}

/** Fires timers until there are none. */
function settle(guest: Guest): void {
  while (guest.timers.size > 0) guest.fireTimer([...guest.timers.keys()][0]!)
}

const PART = 'x'.repeat(64 * 1024)

t.test('a server passes a body on as it comes', async (t) => {
  const guest = await guestOf(
    t,
    `pipeline(req, new Transform({ transform: (chunk, _, done) => done(null, chunk.toString().toUpperCase()) }), res, () => {})`,
  )
  const call = guest.start({ method: 'POST', bodyKind: 'stream' })
  guest.streamData(OF_CALL, call, 'abc')
  settle(guest)
  t.equal(guest.heads.get(call)?.status, 200)
  t.equal(guest.bodyOf(call), 'ABC')
  guest.streamData(OF_CALL, call, 'def', STREAM_FLAGS.end)
  settle(guest)
  t.equal(guest.bodyOf(call), 'ABCDEF')
  t.same(guest.endedAnswers, [call])
})

t.test('what the client does not take, a server does not read', async (t) => {
  const guest = await guestOf(t, `req.pipe(res)`)
  const call = guest.start({ method: 'POST', bodyKind: 'stream' })
  let sent = 0
  for (; sent - guest.streamOf(OF_CALL, call).credited < STREAM_WINDOW_BYTES && sent < 4 * 2 ** 20; sent += PART.length) {
    guest.streamData(OF_CALL, call, PART)
    settle(guest)
  }
  t.equal(guest.bodyOf(call).length, STREAM_WINDOW_BYTES)
  t.ok(sent < 1024 * 1024, `${sent} bytes were taken`)
  for (let left = sent - guest.bodyOf(call).length; left > 0; left -= PART.length) {
    guest.streamCredit(OF_CALL, call, PART.length)
    settle(guest)
  }
  t.equal(guest.bodyOf(call).length, sent)
})

t.test('a request that breaks off is aborted, and one that nobody reads ends with its answer', async (t) => {
  const guest = await guestOf(
    t,
    `req.on('error', (error) => console.log(error.code, req.complete)); req.on('aborted', () => console.log('aborted'))
     if (req.url === '/read') req.resume()
     else res.end('done')`,
  )
  const call = guest.start({ method: 'POST', bodyKind: 'stream', url: 'http://localhost/read' })
  guest.streamData(OF_CALL, call, 'abc')
  guest.streamAbort(OF_CALL, call, 'sent', 'The client left.')
  settle(guest)
  t.same(guest.lines, ['info: aborted', 'info: ECONNRESET false'])
  const unread = guest.start({ method: 'POST', bodyKind: 'stream', url: 'http://localhost/unread' })
  settle(guest)
  t.equal(guest.answers.get(unread)?.body, 'done')
  t.equal(guest.lines.length, 2)
})

t.test('a client sends and receives bit by bit', async (t) => {
  const guest = await guestOf(
    t,
    `const out = http.request('http://up/', { method: 'POST' }, (response) => response.pipe(res))
     req.pipe(out)`,
  )
  const call = guest.start({ method: 'POST', bodyKind: 'stream' })
  guest.streamData(OF_CALL, call, 'abc')
  settle(guest)
  t.match(guest.fetches.get(1), { kind: 'stream' })
  guest.streamCredit(OF_FETCH, 1, STREAM_WINDOW_BYTES)
  settle(guest)
  t.equal(guest.streamOf(OF_FETCH, 1).body, 'abc')
  guest.streamData(OF_CALL, call, 'def', STREAM_FLAGS.end)
  settle(guest)
  t.match(guest.streamOf(OF_FETCH, 1), { body: 'abcdef', hasEnded: true })
  guest.fetchHead(1, { ok: true, status: 201, statusText: '', headers: [], url: 'http://up/', redirected: false })
  guest.streamData(OF_FETCH, 1, 'ghi')
  settle(guest)
  t.equal(guest.heads.get(call)?.status, 200)
  t.equal(guest.bodyOf(call), 'ghi')
  guest.settleFetch(1, { ok: true, status: 201, statusText: '', headers: [], url: 'http://up/', redirected: false })
  settle(guest)
  t.same(guest.endedAnswers, [call])
})

t.test('who writes a request hears of an end though the server takes no more of it', async (t) => {
  const guest = await guestOf(
    t,
    `const out = http.request('http://up/', { method: 'POST' }, (response) => response.resume())
     pipeline(req, out, (error) => res.end(String(error)))`,
  )
  const call = guest.start({ method: 'POST', bodyKind: 'stream' })
  guest.streamData(OF_CALL, call, PART)
  settle(guest)
  guest.streamAbort(OF_FETCH, 1, 'received', 'The server takes no more.')
  guest.fetchHead(1, { ok: true, status: 413, statusText: '', headers: [], url: 'http://up/', redirected: false })
  settle(guest)
  guest.streamData(OF_CALL, call, PART, STREAM_FLAGS.end)
  settle(guest)
  t.equal(guest.answers.get(call)?.body, 'undefined')
})
