/** Group C6 of the list of attacks, first part: what is sent to the data plane. Details of each limit are in test/gateway. */
import t from 'tap'
import type { Answer } from './harness/call.ts'
import type { CaseContext, IsolationCase } from './harness/isolation-case.ts'
import { runCases } from './harness/run-cases.ts'
import { casesOf } from './support-b/cases-of.ts'
import { comes } from './support-b/patience.ts'
import { answersIn } from './support-b/raw-answers.ts'
import { connectRaw } from './support-b/raw-client.ts'

const MAX_BODY_BYTES = 1_000_000
const TIMEOUT_MS = 500
const FLAGS = Object.entries({
  'max-body-bytes': MAX_BODY_BYTES,
  'header-timeout-ms': TIMEOUT_MS,
  'body-timeout-ms': TIMEOUT_MS,
  'answer-timeout-ms': TIMEOUT_MS,
}).flatMap(([flag, value]) => [`--${flag}`, String(value)])

const gateway = casesOf('gateway', { billed: 'none', again: 'any' })

/** Each of these is sent on a connection of its own, is refused, and ends the connection; none reaches the function. */
function refuses(
  id: string,
  title: string,
  expect: NonNullable<IsolationCase['expect']>,
  requestsTo: (path: string, context: CaseContext) => readonly string[],
): IsolationCase {
  return gateway(id, title, {
    expect,
    attack: async (context) => {
      const { t, rig, name } = context
      const answers = await Promise.all(
        requestsTo(`/${name}/`, context).map(async (bytes) => {
          const connection = await connectRaw(t, rig.server.url)
          connection.send(bytes)
          await comes(t, `the connection is closed after ${JSON.stringify(bytes.slice(0, 60))}`, connection.untilClosed())
          const all = answersIn(connection.received)
          t.equal(all.length, 1, `${JSON.stringify(bytes.slice(0, 200))} has one answer`)
          return all
        }),
      )
      return { answers: answers.flat() }
    },
    check: ({ t }, { records }) => t.strictSame(records, [], 'none has come to the function'),
  })
}

const BAD_REQUEST = { status: 400, code: 'bad-request' }

/** @param smuggled what a server would take for another request that read the first in another way */
function smuggling(path: string, smuggled: string): string[] {
  const post = (headers: string): string => `POST ${path} HTTP/1.1\r\nhost: a\r\n${headers}\r\n\r\n`
  const body = `0\r\n\r\n${smuggled}`
  return [
    `${post(`content-length: ${body.length}\r\ntransfer-encoding: chunked`)}${body}`,
    `${post(`transfer-encoding: chunked\r\ncontent-length: ${body.length}`)}${body}`,
    `${post(`transfer-encoding: xchunked\r\ncontent-length: 5`)}${body}`,
    `${post(`transfer-encoding: chunked\r\ntransfer-encoding: identity`)}${body}`,
    `${post(`transfer-encoding: identity, chunked\r\ncontent-length: 5`)}${body}`,
    `${post(`transfer-encoding : chunked`)}${body}`,
    `${post(`transfer-encoding:\x0bchunked`)}${body}`,
    `${post(`x: y\r\n transfer-encoding: chunked`)}${body}`,
    `${post(`content-length: 5\r\ncontent-length: 6`)}${body}`,
    `${post(`content-length: 5\r\ncontent-length: 5`)}${body}`,
    `${post(`content-length: +5`)}${body}`,
    `${post(`content-length: 5, 5`)}${body}`,
    `${post(`content-length: 99999999999999999999`)}${body}`,
    `POST ${path} HTTP/1.1\nhost: a\ncontent-length: 5\n\n${body}`,
    `POST ${path} HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n${smuggled}`,
    `POST ${path} HTTP/1.1\r\nhost : a\r\n\r\n${smuggled}`,
  ]
}

const PARSING = [
  refuses('G02a', 'requests that two servers would read in two ways', BAD_REQUEST, (path) =>
    smuggling(path, `GET ${path}smuggled HTTP/1.1\r\nhost: a\r\n\r\n`),
  ),
  refuses('G02b', 'chunks that are none', BAD_REQUEST, (path) =>
    [
      'fffffffffffffffff\r\nx',
      '-1\r\nx',
      '0x5\r\nhello\r\n',
      '5\nhello\n0\n\n',
      `1;${'x'.repeat(100_000)}`,
      '5\r\nhelloX\r\n',
    ].map((chunks) => `POST ${path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`),
  ),
  refuses('G03a', 'headers and URLs beyond their limits', { status: 431, code: 'headers-too-large' }, (path) => [
    `GET ${path} HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(16_400)}\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\n${'a: b\r\n'.repeat(10_000)}\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\n${'a: b\r\n'.repeat(200)}\r\n`,
    `GET ${path}${'x'.repeat(65_536)} HTTP/1.1\r\nhost: a\r\n\r\n`,
  ]),
  refuses('G03b', 'methods and protocols that are not served', BAD_REQUEST, (path) => [
    `CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n`,
    `TRACE ${path} HTTP/1.1\r\nhost: a\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    `GET ${path} HTTP/3.0\r\nhost: a\r\n\r\n`,
    `GET ${path}\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a/b?c\r\n\r\n`,
    `POST ${path} HTTP/1.1\r\nhost: a\r\nexpect: 200-ok\r\ncontent-length: 0\r\n\r\n`,
  ]),
  gateway('G03c', 'names of functions that are written in other ways', {
    expect: { status: 404, code: /^(?:not-found|route-not-found)$/ },
    attack: async ({ t, rig, name }) => {
      const paths = [
        `/%2e%2e/${name}/`,
        `/${name}%00/`,
        `//${name}/`,
        `/${name}%2f`,
        `/.%2f${name}/`,
        `/${name.toUpperCase()}/`,
        `/%c0%ae/`,
      ]
      const answers = await Promise.all(
        paths.map(async (path) => {
          const connection = await connectRaw(t, rig.server.url)
          connection.send(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
          return answersIn(await connection.untilClosed(), path)
        }),
      )
      t.ok(answers.every(({ length }) => length === 1))
      return { answers: answers.flat() }
    },
    check: ({ t }, { records }) => t.strictSame(records, []),
  }),
  refuses('G03d', 'bodies beyond the limit that no function gets', { status: 413, code: 'body-too-large' }, (path) => [
    `GET ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000000\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 10000000000\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${'10000\r\n'.concat('x'.repeat(65_536), '\r\n').repeat(17)}`,
  ]),
  gateway('G04', 'headers that only Carpool may set', {
    verdict: 'OK',
    billed: 'full',
    handler: 'return Response.json([...request.headers])',
    attack: async ({ t, rig, name }) => {
      const headers = [
        'x-carpool-invocation: 01890000-0000-7000-8000-000000000000',
        'X-Carpool-Hops: 99.00000000000000000000000000000000',
        'x-carpool-owner: somebody',
        'x-forwarded-prefix: /elsewhere',
        'keep-alive: timeout=1',
        'x-own: 1',
      ]
      const connection = await connectRaw(t, rig.server.url)
      connection.send(`GET /${name}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${headers.join('\r\n')}\r\n\r\n`)
      return { answers: answersIn(await connection.untilClosed()) }
    },
    check: ({ t, name }, { answers }) => {
      for (const { text, id } of answers) {
        const headers = new Map(JSON.parse(text) as [string, string][])
        t.equal(headers.get('x-own'), '1')
        t.equal(headers.get('x-forwarded-prefix'), `/${name}`)
        t.notOk([...headers.keys()].some((key) => key.startsWith('x-carpool-') || key === 'keep-alive'))
        t.not(id, '01890000-0000-7000-8000-000000000000', 'nobody chooses the id of an invocation')
      }
    },
  }),
]

/** Opens connections that behave so until the server closes them. */
async function held(
  { t, rig, name }: CaseContext,
  count: number,
  behave: (send: (bytes: string) => void, path: string) => void,
): Promise<Answer[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => connectRaw(t, rig.server.url)))
  for (const { send } of connections) behave(send, `/${name}/`)
  await comes(t, `the server closes ${count} connections`, Promise.all(connections.map(async (one) => one.untilClosed())))
  const answers = connections.flatMap(({ received }) => answersIn(received))
  t.equal(answers.length, count, 'each is told why')
  return answers
}

const SLOW = [
  gateway('G01a', 'fifty clients that never end their headers', {
    expect: { status: 408, code: 'request-timeout' },
    attack: async (context) => ({
      answers: await held(context, 50, (send, path) => send(`GET ${path} HTTP/1.1\r\nhost: a\r\nx: y`)),
    }),
    check: ({ t }, { records }) => t.strictSame(records, []),
  }),
  gateway('G01b', 'fifty clients that never end their bodies', {
    expect: { status: 408, code: 'request-timeout' },
    attack: async (context) => ({
      answers: await held(context, 50, (send, path) =>
        send(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12345`),
      ),
    }),
    check: ({ t }, { records }) => t.strictSame(records, []),
  }),
  gateway('G01c', 'clients that never read their answers', {
    verdict: 'OK',
    // What had not begun when its client was cut off has used nothing.
    billed: 'heartbeat',
    handler: `return new Response('x'.repeat(900_000))`,
    attack: async ({ t, rig, name, call }) => {
      const connections = await Promise.all(Array.from({ length: 10 }, () => connectRaw(t, rig.server.url)))
      for (const { socket, send } of connections) {
        socket.pause()
        // More than the system takes for a client that does not read.
        send(`GET /${name}/ HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(12))
      }
      const closed = Promise.all(connections.map(({ socket }) => new Promise((resolve) => socket.once('close', resolve))))
      await comes(t, 'one who reads is answered', call())
      for (const { socket } of connections) socket.on('error', () => {})
      // A socket that is paused does not notice its end: what it is sent then comes back.
      const notice = setInterval(() => connections.forEach(({ socket }) => socket.write('x', () => {})), 50)
      await comes(t, 'the others are cut off', closed)
      clearInterval(notice)
      return { answers: [await call()] }
    },
  }),
  gateway('G01d', 'five hundred connections that say nothing', {
    verdict: 'OK',
    billed: 'full',
    attack: async ({ t, rig, call }) => {
      const connections = await Promise.all(Array.from({ length: 500 }, () => connectRaw(t, rig.server.url)))
      const answers = [await call(), await call()]
      for (const { socket } of connections) socket.destroy()
      return { answers }
    },
  }),
  gateway('G01e', 'a thousand requests on one connection at once', {
    verdict: 'OK',
    billed: 'full',
    attack: async ({ t, rig, name }) => {
      const connection = await connectRaw(t, rig.server.url)
      connection.send(
        `GET /${name}/ HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(999) +
          `GET /${name}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
      )
      await comes(t, 'the connection is closed', connection.untilClosed())
      const answers = answersIn(connection.received)
      const served = answers.filter(({ status }) => status === 200)
      t.ok(served.length >= 1, `${served.length} of ${answers.length} were served`)
      return { answers: served }
    },
  }),
  gateway('G05', 'attacks on TLS', { skip: 'The data plane speaks plain HTTP; TLS is that of the proxy in front.' }),
]

t.test('gateway', (t) => runCases(t, [...PARSING, ...SLOW], { flags: FLAGS }))
