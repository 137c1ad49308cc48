/** Servers that keep a fetch waiting, or never stop: each is ended by a limit that is named, and its socket with it. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { FetcherOptions } from '../src/fetcher.ts'
import { createTestFetcher, fetchBy, fetcher, rawUpstream, type Result } from './fixtures/upstream.ts'

const HEAD = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`

/** Fetches from a server that answers so, and waits until the server has seen the end of the connection. */
async function fetchFrom(t: Test, answer: (socket: Socket) => void, options: FetcherOptions = {}): Promise<Result> {
  const { origin, closed } = await rawUpstream(t, answer)
  const left = closed()
  const result = await fetcher(options)(origin)
  await left
  return result
}

/** Writes a byte of a text every few milliseconds; the last one over and over. */
function drip(socket: Socket, text: string): void {
  let at = 0
  const timer = setInterval(() => socket.write(text[Math.min(at++, text.length - 1)] ?? ''), 5)
  socket.on('close', () => clearInterval(timer))
}

/** Writes the same again and again, as fast as it is taken. */
function pour(socket: Socket, text: string): void {
  const goOn = (): void => {
    while (!socket.destroyed && socket.write(text));
  }
  socket.on('drain', goOn)
  goOn()
}

const cases: ReadonlyArray<readonly [name: string, answer: (socket: Socket) => void, message: RegExp, options?: FetcherOptions]> =
  [
    ['nothing at all', () => {}, /did not answer within the 80 ms that the fetch had\.$/, { limits: { totalTimeoutMs: 80 } }],
    [
      'a header byte now and then',
      (socket) => drip(socket, `${HEAD}x: y`),
      /took longer than 80 ms to send the headers of its response\.$/,
      { limits: { headTimeoutMs: 80 } },
    ],
    [
      'a body byte now and then',
      (socket) => {
        socket.write(`${HEAD}content-length: 100000\r\n\r\n`)
        drip(socket, 'x')
      },
      /did not answer within the 100 ms/,
      { limits: { totalTimeoutMs: 100 } },
    ],
    [
      'a redirect whose body does not end',
      (socket) => socket.write('HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 10\r\n\r\nx'),
      /did not answer within the 80 ms/,
      { limits: { totalTimeoutMs: 80 } },
    ],
    [
      'interim responses without end',
      (socket) => pour(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10)),
      /too many interim responses; the limit is 16\.$/,
    ],
    [
      'a header without end',
      (socket) => pour(socket.setNoDelay(), `${HEAD}x: `.padEnd(1000, 'x')),
      /larger than the limit of 32768 bytes\.$/,
    ],
    [
      'a megabyte of header',
      (socket) => socket.write(`${HEAD}x: ${'y'.repeat(1024 * 1024)}\r\n\r\n`),
      /headers of the response of .* are larger than the limit of 32768 bytes\.$/,
    ],
    [
      'ten thousand headers',
      (socket) => socket.write(`${HEAD}${'a:\r\n'.repeat(10_000)}\r\n`),
      /has too many headers; the limit is 256\.$/,
    ],
    [
      'a body without end',
      (socket) => {
        socket.write(CHUNKED)
        pour(socket, `400\r\n${'x'.repeat(1024)}\r\n`)
      },
      /is larger than the limit of 10485760 bytes\.$/,
    ],
    [
      'a body that only the end of the connection would end',
      (socket) => {
        socket.write(`${HEAD}\r\n`)
        pour(socket, 'x'.repeat(1024))
      },
      /is larger than the limit of 10485760 bytes\.$/,
    ],
    [
      'an announcement of ten gigabytes',
      (socket) => socket.write(`${HEAD}content-length: 10000000000\r\n\r\nx`),
      /is larger than the limit of 10485760 bytes\.$/,
    ],
    [
      'a chunk extension without end',
      (socket) => {
        socket.write(`${CHUNKED}1;`)
        pour(socket, 'x'.repeat(1024))
      },
      /has more than 1048576 bytes besides its body\.$/,
    ],
    [
      'chunk extensions without end',
      (socket) => {
        socket.write(CHUNKED)
        pour(socket, `1;${'x'.repeat(1000)}\r\nx\r\n`)
      },
      /has more than 1048576 bytes besides its body\.$/,
    ],
    [
      'a huge trailer',
      (socket) => socket.write(`${CHUNKED}1\r\nx\r\n0\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`),
      /larger than the limit of 32768 bytes\.$/,
    ],
    [
      'trailers without end',
      (socket) => {
        socket.write(`${CHUNKED}1\r\nx\r\n0\r\n`)
        pour(socket, 'x: y\r\n'.repeat(100))
      },
      /larger than the limit of 32768 bytes\.$/,
    ],
    ['an end before the head', (socket) => socket.end(HEAD), /closed the connection\.$/],
    ['a half close before anything', (socket) => socket.end(), /closed the connection\.$/],
    [
      'a half close within the body',
      (socket) => socket.end(`${HEAD}content-length: 100\r\n\r\nhalf`),
      /closed the connection\.|does not have the length that it announced\.$/,
    ],
    [
      'a half close within a chunk',
      (socket) => socket.end(`${CHUNKED}64\r\nhalf`),
      /closed the connection\.|gave no valid HTTP response\.$/,
    ],
    ['a reset within the head', (socket) => socket.write(HEAD, () => socket.resetAndDestroy()), /closed the connection\.$/],
  ]

for (const [name, answer, message, options] of cases) {
  t.test(name, async (t) => {
    const result = await fetchFrom(t, answer, options)
    t.match(result, { ok: false, end: 'failed', message })
    t.ok(result.bytesIn <= 11 * 1024 * 1024, `${result.bytesIn} bytes`)
  })
}

for (const [how, head] of [
  ['a length', `${HEAD}content-length: 100000\r\n\r\n`],
  ['chunks', `${CHUNKED}186a0\r\n`],
  ['the end of the connection', `${HEAD}\r\n`],
] as const) {
  t.test(`a reset within a body that ${how} would end`, async (t) => {
    const egress = createTestFetcher()
    const { origin } = await rawUpstream(t, (socket) => {
      socket.write(head + 'x'.repeat(1000))
      // A reset takes along what has not been read yet.
      const resetOnceRead = (): void => {
        if (egress.reading.memoryBytes > 1000) socket.resetAndDestroy()
        else setImmediate(resetOnceRead)
      }
      resetOnceRead()
    })
    const result = await fetchBy(egress, origin)
    t.match(result, { ok: false, end: 'failed', message: /closed the connection\.$/, bytesIn: 1000 })
  })
}

t.test('a TLS server that never says a word is a connection that does not come about', async (t) => {
  const { origin, closed } = await rawUpstream(t, () => {})
  const left = closed()
  const result = await fetcher({ limits: { connectTimeoutMs: 80 } })(origin.replace('http:', 'https:'))
  t.match(result, { ok: false, message: /did not accept the connection within 80 ms\.$/ })
  await left
})

t.test('a connection that nobody waits for any more is not waited for', async (t) => {
  const { origin, closed } = await rawUpstream(t, () => stopping.abort())
  const stopping = new AbortController()
  const left = closed()
  const fetch = fetcher({ limits: { connectTimeoutMs: 600_000, totalTimeoutMs: 600_000 } })
  t.match(await fetch(origin.replace('http:', 'https:'), {}, stopping.signal), { ok: false, end: 'aborted' })
  await left
})

t.test('so is a name that no server resolves in time', async (t) => {
  const resolve = (): Promise<never> => new Promise(() => {})
  const result = await fetcher({ resolve, limits: { connectTimeoutMs: 80 } })('http://slow.example/')
  t.match(result, { ok: false, message: 'slow.example did not accept the connection within 80 ms.', bytesOut: 0 })
})

t.test('what comes after a response is for nobody', async (t) => {
  const smuggled = 'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled'
  const connections: number[] = []
  const { origin } = await rawUpstream(t, (socket) => {
    connections.push(1)
    socket.write(`${HEAD}content-length: 4\r\n\r\nreal${smuggled}`)
  })
  const fetch = fetcher()
  for (let call = 0; call < 3; call += 1) t.equal(Buffer.from((await fetch(origin)).body).toString(), 'real')
  t.equal(connections.length, 3)
})
