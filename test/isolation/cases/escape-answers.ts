/** Group C1 of the list of attacks: answers that are none, or that would be more than one. */
import { connect } from 'node:net'
import type { IsolationCase } from '../harness/isolation-case.ts'

const LIMITS = { cpuMs: 2_000, wallMs: 20_000, memoryMb: 64 }

/** Fails, and its isolate lives. */
export function fails(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return { id, group: 'escape', title, verdict: 'E', billed: 'full', limits: LIMITS, handler, ...more }
}

/** A handler of Lambda's form, which answers `/again` and counts how often a property of its answer was read. */
export function lambda(answer: string): string {
  return `(function () { let seen = 0; const reads = []; return { async handler(event) {
    if (event.rawPath.endsWith('/again')) return { statusCode: 200, body: 'seen ' + seen };
    if (event.rawPath.endsWith('/reads')) return { statusCode: 200, body: JSON.stringify(reads) };
    seen++; ${answer} } } })`
}

const INVALID = /^(?:invalid-response|exception)$/

const RETURNED = (
  [
    ['E12a', 'a function', '() => {}'],
    ['E12b', 'a class', 'class {}'],
    ['E12c', 'a generator', '(function* () { yield 1 })()'],
    ['E12d', 'a symbol', 'Symbol("x")'],
    ['E12e', 'a BigInt', '10n'],
    ['E12f', 'a WeakMap', 'new WeakMap()'],
    ['E12g', 'an Error', 'new Error("x")'],
    ['E12h', 'an object that holds itself', '(() => { const a = {}; a.a = a; return a })()'],
    [
      'E12i',
      'a Proxy whose traps throw',
      'new Proxy({}, { get() { throw new Error("get") }, getPrototypeOf() { throw new Error("proto") } })',
    ],
    ['E12j', 'the class Response', 'Response'],
    [
      'E12k',
      'an object that looks like a Response',
      '({ status: 200, headers: new Headers(), body: null, ok: true, text: async () => "x", __proto__: Response.prototype })',
    ],
    ['E12l', 'a revoked Proxy', '(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })()'],
    ['E12m', 'a Response whose body was read', 'await (async () => { const r = new Response("x"); await r.text(); return r })()'],
    ['E12n', 'a Response of an error', 'Response.error()'],
  ] as const
).map(([id, title, value]) => fails(id, `${title} for an answer`, `return ${value}`, { expect: { code: INVALID } }))

const LAMBDA: readonly IsolationCase[] = [
  fails('E09a', 'a status that loops when it is read', '', {
    script: lambda('return { get statusCode() { for (;;); } }'),
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100 },
    expect: { status: 502, code: 'cpu-exceeded' },
  }),
  fails('E09b', 'a body that throws when it is read', '', {
    script: lambda(`return { statusCode: 200, get body() { throw new Error('mine') } }`),
  }),
  fails('E09c', 'an answer whose parts change when they are read again', '', {
    script:
      lambda(`return new Proxy({}, { get(_, key) { if (key === 'then' || key === 'toJSON') return undefined; reads.push(String(key)); const again = reads.filter((one) => one === String(key)).length > 1;
      return key === 'statusCode' ? (again ? 999 : 200) : key === 'body' ? (again ? '\\r\\n' : 'once') : key === 'headers' ? (again ? { a: 'b\\r\\nc: d' } : {}) : undefined } })`),
    verdict: 'OK',
    expect: { status: 200, body: 'once' },
    isRepeatable: false,
    check: async ({ t, call }) => {
      const reads = JSON.parse((await call('/reads', {})).text) as string[]
      t.strictSame(reads.toSorted(), [...new Set(reads)].toSorted(), 'each part is read once')
    },
  }),
  ...(
    [
      ['E26a', 'a status of 99', '{ statusCode: 99 }'],
      ['E26b', 'a status of 101', '{ statusCode: 101 }'],
      ['E26c', 'a status of 1000', '{ statusCode: 1000 }'],
      ['E26d', 'a status of NaN', '{ statusCode: NaN }'],
      ['E26e', 'a status with a line break', `{ statusCode: '200 OK\\r\\nX: y' }`],
      ['E26f', 'a header with a line break', `{ statusCode: 200, headers: { a: 'b\\r\\nc: d' } }`],
      ['E26g', 'a header whose name has a line break', `{ statusCode: 200, headers: { 'a\\r\\nb': 'c' } }`],
      ['E26h', 'a header with a zero', `{ statusCode: 200, headers: { a: 'b\\0c' } }`],
      ['E26i', 'a cookie with a line break', `{ statusCode: 200, cookies: ['a=b\\r\\nset-cookie: c=d'] }`],
      [
        'E26j',
        'ten thousand headers',
        '{ statusCode: 200, headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => ["x-" + i, "y"])) }',
      ],
      ['E26k', 'a header of a megabyte', '{ statusCode: 200, headers: { a: "x".repeat(1e6) } }'],
    ] as const
  ).map(([id, title, answer]) => fails(id, title, '', { script: lambda(`return ${answer}`), expect: { code: INVALID } })),
]

/** Headers that are about the connection belong to the server: they are dropped, and the connection stays in step. */
const FRAMING = (
  [
    ['E26l', 'a content-length that is too short', `'content-length': '1'`],
    ['E26m', 'a content-length that is too long', `'content-length': '100'`],
    ['E26n', 'a transfer-encoding', `'transfer-encoding': 'chunked'`],
    ['E26o', 'an upgrade', `'connection': 'upgrade', 'upgrade': 'websocket'`],
    ['E26p', 'headers with the names of what all objects have', `'__proto__': 'x', 'constructor': 'y', 'toString': 'z'`],
    ['E26q', 'headers of Carpool', `'x-carpool-invocation': 'forged', 'x-carpool-error': 'forged', 'x-carpool-hops': 'forged'`],
  ] as const
).map(
  ([id, title, headers]): IsolationCase => ({
    ...fails(id, `an answer with ${title}`, `return new Response('ten bytes.', { headers: [${toPairs(headers)}] })`),
    verdict: 'R',
    expect: { status: 200, body: 'ten bytes.' },
    check: async ({ t, rig, name }) => {
      const raw = await callTwice(rig.server.url, `/${name}/`)
      t.equal(raw.split('ten bytes.').length, 3, 'two calls on one connection have two answers')
      t.equal(raw.split('HTTP/1.1 200 OK').length, 3)
      t.notMatch(raw, /upgrade|forged/i)
    },
  }),
)

function toPairs(headers: string): string {
  return headers.replaceAll(/('[^']*'): ('[^']*')/g, '[$1, $2]')
}

/** Sends two requests on one connection, the second when the first is answered, and gives all that came. */
function callTwice(url: string, path: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const request = (connection: string): string => `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: ${connection}\r\n\r\n`
  return new Promise((resolve, reject) => {
    let all = ''
    let isSecond = false
    const socket = connect(Number(port), hostname, () => socket.write(request('keep-alive')))
    socket.setEncoding('latin1').on('data', (text: string) => {
      all += text
      if (isSecond || !all.includes('ten bytes.')) return
      isSecond = true
      socket.write(request('close'))
    })
    socket.once('error', reject).once('close', () => resolve(all))
  })
}

export const ESCAPE_ANSWER_CASES: readonly IsolationCase[] = [...RETURNED, ...LAMBDA, ...FRAMING]
