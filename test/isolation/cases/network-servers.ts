/** Group C5 of the list of attacks, second part: servers that are slow, that lie, and that send too much. */
import type { Socket } from 'node:net'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { CaseContext, IsolationCase } from '../harness/isolation-case.ts'
import { openBlackHole } from '../support-b/black-hole.ts'
import { pathTo, TRY_ONE } from '../support-b/fetch-attempts.ts'
import { comes } from '../support-b/patience.ts'
import { drip, startRawUpstream, writeForever } from '../support-b/raw-upstream.ts'

type Serve = (socket: Socket, head: string) => void

const OK_HEAD = 'HTTP/1.1 200 OK\r\nconnection: close\r\n'
const DRIP_MS = 20
/** Larger than any fetch may get. */
const BOMB_BYTES = 200 * 1024 * 1024
/** What a limit of 10 MiB lets a server send before it is cut off, with all that the system holds on the way. */
const MOST_SENT_BYTES = 64 * 1024 * 1024

/** One call, whose fetch goes to a server that behaves so. Afterwards no connection to it is open. */
async function fetchFrom({ t, call }: CaseContext, serve: Serve): ReturnType<NonNullable<IsolationCase['attack']>> {
  let sentBytes = 0
  const upstream = await startRawUpstream(t, (socket, head) => {
    socket.prependOnceListener('close', () => (sentBytes = socket.bytesWritten))
    serve(socket, head)
  })
  const answer = await call(pathTo(upstream.url))
  await comes(t, 'the connection is closed', upstream.untilClosed())
  t.ok(sentBytes < MOST_SENT_BYTES, `the server could send ${sentBytes} bytes`)
  return { answers: [answer] }
}

/** Ended by the wall limit of the invocation, which costs hardly any CPU. */
function endsInTime(id: string, title: string, attack: NonNullable<IsolationCase['attack']>): IsolationCase {
  return {
    id,
    group: 'network',
    title,
    verdict: 'E',
    billed: 'full',
    limits: { wallMs: 1_000 },
    expect: { status: 504, code: 'timeout' },
    handler: TRY_ONE,
    attack,
    check: ({ t }, { records }) => {
      for (const { cpu_us, wall_us } of records) {
        // The two ends are read from two clocks.
        t.ok(Number(wall_us) >= 999_000, `billed ${wall_us} µs of waiting`)
        t.ok(Number(cpu_us) < 250_000, `and ${cpu_us} µs of CPU`)
      }
    },
  }
}

function slow(id: string, title: string, serve: Serve): IsolationCase {
  return endsInTime(id, title, (context) => fetchFrom(context, serve))
}

/** The fetch is refused or gets what the server said; the invocation goes on. */
function lies(id: string, title: string, body: RegExp, serve: Serve): IsolationCase {
  return {
    id,
    group: 'network',
    title,
    verdict: 'R',
    billed: 'full',
    // What is refused by its size must not take as long.
    limits: { wallMs: 3_000 },
    expect: { status: 200, code: '', body },
    handler: TRY_ONE,
    attack: (context) => fetchFrom(context, serve),
  }
}

const REFUSED = /^refused: TypeError: /
const TOO_LARGE = /^refused: TypeError: .*(?:limit|larger|too many|too large)/

const SLOW = [
  endsInTime('N06a', 'a server that never accepts the connection', async ({ t, call }) => ({
    answers: [await call(pathTo(await openBlackHole(t)))],
  })),
  slow('N06b', 'a server that never answers', () => {}),
  slow('N06c', 'a server that sends its head byte by byte', (socket) => {
    socket.write(OK_HEAD)
    drip(socket, 'x', DRIP_MS)
  }),
  slow('N06d', 'a server that sends its body byte by byte', (socket) => {
    socket.write(`${OK_HEAD}content-length: 1000000\r\n\r\n`)
    drip(socket, 'x', DRIP_MS)
  }),
  lies('N06e', 'a server that never ends to say that it will continue', REFUSED, (socket) =>
    drip(socket, 'HTTP/1.1 102 Processing\r\n\r\n', 1),
  ),
  lies('N06f', 'a server that closes without an answer', REFUSED, (socket) => socket.end()),
  lies('N06g', 'a server that resets the connection in the middle of the body', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}content-length: 1000\r\n\r\nhalf`, () => socket.resetAndDestroy())
  }),
  lies('N06h', 'a server that closes its half and goes on listening', REFUSED, (socket) => {
    socket.end(`${OK_HEAD}content-length: 1000\r\n\r\nhalf`)
  }),
  slow('N06i', 'a server that sends its body in chunks of a byte, as fast as it can', (socket) => {
    socket.write(`${OK_HEAD}transfer-encoding: chunked\r\n\r\n`)
    writeForever(socket, '1\r\nx\r\n'.repeat(10_000))
  }),
]

const LYING = [
  lies('N07a', 'a body without end', TOO_LARGE, (socket) => {
    socket.write(`${OK_HEAD}\r\n`)
    writeForever(socket, Buffer.alloc(65_536, 'x'))
  }),
  lies('N07b', 'a body that is announced as 10 GB', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}content-length: 10000000000\r\n\r\n`)
    writeForever(socket, Buffer.alloc(65_536, 'x'))
  }),
  lies('N07c', 'a body that is shorter than announced', REFUSED, (socket) =>
    socket.end(`${OK_HEAD}content-length: 100\r\n\r\nshort`),
  ),
  lies('N07d', 'a gzip bomb', TOO_LARGE, (socket) => {
    const body = gzipSync(Buffer.alloc(BOMB_BYTES), { level: 1 })
    socket.write(`${OK_HEAD}content-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`)
    socket.write(body)
  }),
  lies('N07e', 'a bomb of gzip in Brotli', TOO_LARGE, (socket) => {
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
    const body = brotliCompressSync(gzipSync(Buffer.alloc(BOMB_BYTES), { level: 1 }), quality)
    socket.write(`${OK_HEAD}content-encoding: gzip, br\r\ncontent-length: ${body.length}\r\n\r\n`)
    socket.write(body)
  }),
  lies('N07f', 'a thousand content codings', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}content-encoding: ${'gzip, '.repeat(999)}gzip\r\ncontent-length: 4\r\n\r\nbody`)
  }),
  lies('N07g', 'a header of 1 MB', TOO_LARGE, (socket) =>
    socket.write(`${OK_HEAD}a: ${'x'.repeat(1e6)}\r\ncontent-length: 0\r\n\r\n`),
  ),
  lies('N07h', 'ten thousand headers', TOO_LARGE, (socket) => {
    socket.write(`${OK_HEAD}${'a: b\r\n'.repeat(10_000)}content-length: 0\r\n\r\n`)
  }),
  lies('N07i', 'a chunk extension without end', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}transfer-encoding: chunked\r\n\r\n1;`)
    writeForever(socket, Buffer.alloc(65_536, 'x'))
  }),
  lies('N07j', 'trailers without end', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n`)
    writeForever(socket, Buffer.from('trailer: value\r\n'.repeat(1000)))
  }),
  lies('N07k', 'a chunk size that overflows', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nx`)
  }),
  lies('N07l', 'a length and chunks at once', REFUSED, (socket) => {
    socket.write(`${OK_HEAD}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`)
  }),
]

/** What a server sends beyond its answer must not be the answer to the next fetch, whoever makes that. */
const DESYNC: IsolationCase = {
  id: 'N07m',
  group: 'network',
  title: 'an answer behind the answer, meant for the next fetch',
  verdict: 'R',
  billed: 'full',
  handler: TRY_ONE,
  attack: async ({ t, call }) => {
    const poison = 'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n'.padEnd(1100, 'p')
    let count = 0
    const upstream = await startRawUpstream(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nright${count++ === 0 ? poison : ''}`)
    })
    const answers = []
    for (let index = 0; index < 3; index++) answers.push(await call(pathTo(upstream.url)))
    return { answers }
  },
  expect: { status: 200, code: '', body: /^(?:200 5 bytes|refused: TypeError: .*)$/ },
  check: ({ t }, { answers }) => t.equal(answers.at(-1)?.text, '200 5 bytes'),
}

export const NETWORK_SERVER_CASES: readonly IsolationCase[] = [...SLOW, ...LYING, DESYNC]
