/** Group C5 of the list of attacks, third part: redirects, what a request may carry, and fetches that nobody waits for. */
import type { IsolationCase } from '../harness/isolation-case.ts'
import { untilRecorded } from '../harness/records.ts'
import { casesOf } from '../support-b/cases-of.ts'
import { outcomesIn, pathTo, TRY_ALL, TRY_ONE } from '../support-b/fetch-attempts.ts'
import { leftAnswer } from '../support-b/left-answer.ts'
import { comes } from '../support-b/patience.ts'
import { startRawUpstream, type RawUpstream } from '../support-b/raw-upstream.ts'

const EMPTY = 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'

const network = casesOf('network')

/** A call for each of these locations: a server answers with a redirect there. */
function redirects(
  id: string,
  title: string,
  locations: (canaryUrl: string) => readonly (readonly [status: number, location: string])[],
): IsolationCase {
  return network(id, title, {
    handler: TRY_ALL,
    attack: async ({ t, rig, call }) => {
      const all = locations(`http://127.0.0.1:${rig.canary.port}/`)
      const upstream = await startRawUpstream(t, (socket, head) => {
        const [, index = ''] = /^\w+ \/(\d+)/.exec(head) ?? []
        const [status, location] = all[Number(index)] ?? [500, '']
        socket.write(`HTTP/1.1 ${status} Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
      })
      const attempts = all.map((_, index) => ({ url: `${upstream.url}${index}` }))
      return { answers: [await call('/', { method: 'POST', body: JSON.stringify(attempts) })] }
    },
    check: ({ t }, { answers }) => {
      t.strictSame(
        outcomesIn(answers).filter((outcome) => !outcome.startsWith('TypeError: ')),
        [],
        'none is followed',
      )
    },
  })
}

const REDIRECTS = [
  redirects('N04a', 'redirects to an address that is not open', (canaryUrl) =>
    [301, 302, 303, 307, 308].map((status) => [status, canaryUrl] as const),
  ),
  redirects('N04b', 'redirects to other schemes', () =>
    ['file:///etc/passwd', 'data:text/plain,x', 'ftp://127.0.0.2/', 'javascript:1', 'http://user:password@127.0.0.2/'].map(
      (location) => [302, location] as const,
    ),
  ),
  redirects('N04c', 'redirects without end', () => [[302, '/0']]),
  network('N04d', 'a redirect to another origin that would get the credentials of the first', {
    handler: `
      const response = await fetch(new URL(request.url).searchParams.get('to'), {
        headers: { authorization: 'Bearer mine', cookie: 'a=mine', 'x-own': 'mine', 'proxy-authorization': 'mine' },
      });
      return new Response(await response.text())`,
    attack: async ({ t, call }) => {
      const second = await startRawUpstream(t, (socket) => void socket.write(EMPTY))
      const first = await startRawUpstream(t, (socket) => {
        socket.write(`HTTP/1.1 302 Found\r\nlocation: ${second.url}\r\ncontent-length: 0\r\n\r\n`)
      })
      const answer = await call(pathTo(first.url))
      t.match(first.requests[0], /authorization: Bearer mine\r\n/i)
      t.match(second.requests[0], /x-own: mine\r\n/i, 'the fetch went on')
      t.notMatch(second.requests[0], /authorization|cookie/i)
      return { answers: [answer] }
    },
  }),
]

/** A call whose request is looked at where it arrives. */
function sends(
  id: string,
  title: string,
  handler: string,
  look: (t: Parameters<NonNullable<IsolationCase['attack']>>[0]['t'], upstream: RawUpstream) => void,
): IsolationCase {
  return network(id, title, {
    handler,
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => void socket.write(EMPTY))
      const answer = await call(pathTo(upstream.url))
      look(t, upstream)
      return { answers: [answer] }
    },
  })
}

const TARGET = `const to = new URL(request.url).searchParams.get('to');`

const CONTENTS = [
  sends(
    'N11a',
    'headers that are for the connection alone',
    `${TARGET}
    const names = ['host', 'content-length', 'transfer-encoding', 'connection', 'expect', 'te', 'trailer', 'upgrade', 'keep-alive',
      'proxy-authorization', 'proxy-connection', 'http2-settings'];
    let tried = 0;
    for (const name of names) {
      try { await fetch(to, { headers: { [name]: 'chunked', 'x-seen': String(++tried) } }) } catch (error) { if (!(error instanceof TypeError)) throw error }
    }
    return new Response(String(tried))`,
    (t, { requests, port }) => {
      t.ok(requests.length > 0)
      for (const head of requests) {
        t.notMatch(head, /: chunked\r\n/, 'it is not sent')
        t.match(head, new RegExp(`\\r\\nhost: 127\\.0\\.0\\.2:${port}\\r\\n`, 'i'))
      }
    },
  ),
  sends(
    'N11b',
    'line ends in the URL, the method and the headers',
    `${TARGET}
    const tries = [
      () => fetch(to + 'a\\r\\nx-smuggled: 1'),
      () => fetch(to + 'a b HTTP/1.1\\r\\nx-smuggled: 1'),
      () => fetch(to, { method: 'GET / HTTP/1.1\\r\\nx-smuggled: 1\\r\\n' }),
      () => fetch(to, { headers: { 'a\\r\\nx-smuggled': '1' } }),
      () => fetch(to, { headers: { a: 'b\\r\\nx-smuggled: 1' } }),
      () => fetch(to, { headers: { a: 'b\\nx-smuggled: 1' } }),
      () => fetch(to, { headers: { a: 'b\\u010d\\u010ax-smuggled: 1' } }),
      () => fetch(to, { headers: { ':authority': 'elsewhere' } }),
      () => fetch(to, { headers: [['a', 'b\\0c']] }),
    ];
    for (const attempt of tries) await attempt().catch((error) => { if (!(error instanceof TypeError)) throw error });
    return new Response('tried')`,
    (t, { requests }) => {
      for (const head of requests) {
        t.notMatch(head, /^(?:x-smuggled|:authority)/im)
        t.match(head, /^GET \/\S* HTTP\/1\.1\r\n/)
      }
    },
  ),
  sends(
    'N12',
    'headers that only Carpool may send',
    `${TARGET}
    await fetch(to, { headers: { 'x-carpool-hops': '0', 'x-carpool-invocation': 'forged', 'X-Carpool-Anything': '1', 'cdn-loop': 'carpool', 'x-own': '1' } });
    return new Response('sent')`,
    (t, { requests }) => {
      t.match(requests[0], /x-own: 1\r\n/i)
      t.notMatch(requests[0], /forged|x-carpool-anything|x-carpool-hops: 0\r\n|cdn-loop: carpool\r\n/i)
    },
  ),
  sends(
    'N13',
    'ways to another protocol',
    `${TARGET}
    const kinds = [typeof EventSource, typeof XMLHttpRequest];
    const refused = [];
    for (const method of ['CONNECT', 'TRACE', 'TRACK', 'connect']) await fetch(to, { method }).catch((error) => refused.push(error.name));
    await fetch(to.replace('http:', 'ws:')).catch((error) => refused.push(error.name));
    await fetch(to, { headers: { connection: 'upgrade, http2-settings', upgrade: 'h2c', 'http2-settings': 'AAA' } }).catch(() => {});
    await fetch(to, { headers: { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-key': 'AAAA' } }).catch(() => {});
    if (String(kinds) !== 'undefined,undefined' || refused.length !== 5) throw new Error(kinds + ' ' + refused);
    return new Response('refused')`,
    (t, { requests }) => {
      for (const head of requests) t.notMatch(head, /^(?:CONNECT|TRACE|TRACK) |^(?:upgrade|http2-settings|Upgrade):/m)
    },
  ),
]

const LEFT = [
  network('N08a', 'hundreds of fetches whose bodies are never read', {
    verdict: 'OK',
    handler: `
      await Promise.all(Array.from({ length: 50 }, () => fetch(env.UPSTREAM + 'bytes/100000')));
      return new Response('left')`,
    attack: async ({ t, rig, call }) => {
      const answers = []
      for (let round = 0; round < 6; round++) answers.push(await call())
      const open = await rig.upstream.connections()
      t.ok(open <= 150, `300 fetches, 50 at a time, left ${open} connections open`)
      return { answers }
    },
  }),
  network('N08b', 'clones of a response without end', {
    verdict: 'K',
    billed: 'cap',
    limits: { memoryMb: 48, cpuMs: 2_000 },
    handler: `
      const response = await fetch(env.UPSTREAM + 'bytes/1000000');
      const kept = [];
      for (;;) { const copy = response.clone(); kept.push(copy, await copy.text()) }`,
    // A body for which there is no room is an error of `text()`.
    expect: { code: /^(?:memory-exceeded|cpu-exceeded|exception)$/ },
    again: 'any',
  }),
  network('N08c', 'a storm of fetches that are aborted at once', {
    handler: `
      ${TARGET}
      const names = await Promise.all(Array.from({ length: 300 }, (_, index) => {
        const controller = new AbortController();
        const fetched = fetch(to, { signal: controller.signal }).then(() => 'answered', (error) => error.name);
        if (index % 3 === 0) controller.abort(); else setTimeout(() => controller.abort(), index % 7);
        return fetched;
      }));
      return new Response([...new Set(names)].join())`,
    expect: { status: 200, code: '', body: /^AbortError$/ },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const answer = await call(pathTo(upstream.url))
      await comes(t, 'the connections are closed', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
  network('N08d', 'ten thousand listeners on one abort signal', {
    verdict: 'OK',
    handler: `
      const controller = new AbortController();
      let heard = 0;
      for (let count = 0; count < 1e4; count++) controller.signal.addEventListener('abort', () => heard++);
      const fetched = fetch(env.UPSTREAM + 'hold', { signal: controller.signal }).catch((error) => error.name);
      controller.abort();
      return new Response(heard + ' ' + await fetched)`,
    expect: { status: 200, code: '', body: /^10000 AbortError$/ },
  }),
  network('N09a', 'an answer while a fetch is under way that never ends', {
    verdict: 'OK',
    limits: { wallMs: 1_000 },
    handler: `${TARGET} fetch(to).catch(() => {}); return new Response('early')`,
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const answer = await call(pathTo(upstream.url))
      await upstream.untilRequests(1)
      await comes(t, 'the connection is closed a wall limit after the answer', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
  network('N09b', 'a client that leaves while a fetch is under way', {
    verdict: 'E',
    handler: TRY_ONE,
    expect: { status: 0, code: '' },
    attack: async ({ t, rig, name, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const leaving = new AbortController()
      const answer = call(pathTo(upstream.url), { signal: leaving.signal })
      await upstream.untilRequests(1)
      leaving.abort()
      await comes(t, 'the connection is closed', upstream.untilClosed())
      t.equal((await answer).code, 'cut-off')
      const records = await untilRecorded(rig.server, name, 1)
      return { answers: records.slice(-1).map((record) => leftAnswer(record)) }
    },
    check: ({ t }, { records }) => t.match(records.at(-1), { outcome: 'canceled', status: 499 }),
  }),
  network('N14', 'a flood of fetches that are never answered', {
    verdict: 'E',
    limits: { wallMs: 1_000 },
    handler: `${TARGET} await Promise.all(Array.from({ length: 50 }, () => fetch(to)));`,
    expect: { status: 504, code: 'timeout' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const answers = await Promise.all(Array.from({ length: 20 }, () => call(pathTo(upstream.url))))
      await comes(t, 'the connections are closed', upstream.untilClosed())
      return { answers }
    },
  }),
  network('N15', 'the end of what fetches for functions', {
    skip: 'It is a thread of the server, which nobody can end from outside; packages/egress/test ends it.',
  }),
]

export const NETWORK_REQUEST_CASES: readonly IsolationCase[] = [...REDIRECTS, ...CONTENTS, ...LEFT]
