/**
 * Group C5 of the list of attacks, fourth part: raw sockets. What is said of fetches must hold for them, with less that is
 * between.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { outcomesIn } from '../support-b/fetch-attempts.ts'
import { comes } from '../support-b/patience.ts'
import { startRawUpstream, UPSTREAM_ADDRESS, writeForever } from '../support-b/raw-upstream.ts'

/** Sockets as the runtime gives them to the modules of a bundle, without what those make of them. */
const SCOPE = `
const support = arguments[0];
const open = (host, port, { more = {}, on = {} } = {}) => {
  const opened = {};
  opened.connected = new Promise((resolve, reject) => {
    opened.socket = support.openSocket({ kind: 'tcp', host, port, ...more }, {
      connected: resolve, data() {}, ended() {}, room() {},
      closed(end) { reject(new Error(end.code + ': ' + end.message)) }, ...on,
    });
  });
  opened.connected.catch(() => {});
  return opened;
};
const bytesOf = (text) => new TextEncoder().encode(text);
const HELLO = bytesOf('hello\\r\\n\\r\\n');
const hello = async (host, port, options) => {
  const { socket, connected } = open(host, port, options);
  await connected;
  socket.send(HELLO);
  return socket;
};`
const TARGET = "const port = Number(new URL(request.url).searchParams.get('port')); const host = '127.0.0.2';"
/** More than any window and the system's buffers hold. */
const MOST_SENT_BYTES = 32 * 1024 * 1024

/** A key whose decryption takes hours, by RFC 8018: PBKDF2 with as many iterations as there may be. */
const HOURS = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGVMGEGCSqGSIb3DQEFDTBUMDMGCSqGSIb3DQEFDDAmBBAHBwcHBwcHBwcHBwcH
BwcHAgR/////MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBAJCQkJCQkJCQkJ
CQkJCQkJBDAFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF
BQUFBQUFBQU=
-----END ENCRYPTED PRIVATE KEY-----`

function socketCase(id: string, title: string, more: Partial<IsolationCase>): IsolationCase {
  return { id, group: 'network', title, verdict: 'R', billed: 'full', scope: SCOPE, ...more }
}

/** Tries sockets at the places of the request's body, and says what came of each. */
const TRY_PLACES = `
  const outcomes = await Promise.all((await request.json()).map(async ({ host, port, more }) => {
    try {
      const { socket, connected } = open(host, port, { more });
      await connected;
      socket.stop();
      return 'connected';
    } catch (error) {
      return error.message;
    }
  }));
  return Response.json(outcomes);`

function refuses(id: string, title: string, places: (canaryPort: number) => readonly object[]): IsolationCase {
  return socketCase(id, title, {
    handler: TRY_PLACES,
    attack: async ({ rig, call }) => ({
      answers: [await call('/', { method: 'POST', body: JSON.stringify(places(rig.canary.port)) })],
    }),
    check: ({ t }, { answers }) => {
      const reached = outcomesIn(answers).filter((outcome) => !/^[A-Z_]+: /.test(outcome))
      t.strictSame(reached, [], 'none was reached')
    },
  })
}

const at =
  (hosts: string) =>
  (port: number): object[] =>
    hosts
      .trim()
      .split(/\s+/)
      .map((host) => ({ host, port }))

const ADDRESSES = [
  refuses(
    'N16a',
    'sockets to the loopback address in all spellings of IPv4',
    at('127.0.0.1 127.1 127.0.1 127.0.0.1. 2130706433 0x7f.1 0x7f000001 017700000001 0177.0.0.01 0.0.0.0 0 １２７.０.０.１'),
  ),
  refuses(
    'N16b',
    'sockets to the loopback address in all forms of IPv6',
    at('::1 [::1] :: ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: ::1%lo'),
  ),
  refuses('N16c', 'sockets to names that mean this machine', at(`localhost LOCALHOST localhost. a.localhost ${hostname()}`)),
  refuses('N16d', 'sockets to places that are none', (port) => [
    { host: '', port },
    { host: 7, port },
    { host: '127.0.0.1\0', port },
    { host: '127.0.0.2/..', port: '80' },
    { host: 'x'.repeat(100_000), port },
    { host: UPSTREAM_ADDRESS, port: 0 },
    { host: UPSTREAM_ADDRESS, port: 65_536 },
    { host: UPSTREAM_ADDRESS, port: 1.5 },
    { host: UPSTREAM_ADDRESS, port, more: { kind: 'unix', path: '/run/docker.sock' } },
    { host: UPSTREAM_ADDRESS, port, more: { kind: 'websocket', url: 'file:///etc/passwd' } },
    { host: UPSTREAM_ADDRESS, port, more: { tls: 'yes' } },
    { host: UPSTREAM_ADDRESS, port, more: { tls: { serverName: '', isVerified: true, alpn: [], ca: 7 } } },
  ]),
]

const SERVERS = [
  socketCase('N17a', 'a server that never reads, and a function that waits for room', {
    handler: `${TARGET}
      const socket = await hello(host, port);
      const part = new Uint8Array(65536);
      let sent = 0;
      while (!socket.isFull) { socket.send(part); sent += part.length; if (sent % 1048576 === 0) await new Promise((next) => setTimeout(next, 1)); }
      socket.stop();
      return new Response(sent < ${MOST_SENT_BYTES} ? 'full' : 'sent ' + sent);`,
    expect: { status: 200, code: '', body: 'full' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => socket.pause())
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N17b', 'a server that never reads, and a function that does not wait', {
    verdict: 'E',
    limits: { memoryMb: 64, cpuMs: 10_000 },
    handler: `${TARGET}
      const socket = await hello(host, port);
      for (;;) socket.send(new Uint8Array(1048576));`,
    // There is no memory for more, which is told before the isolate has none at all, unless calls before it have kept too much.
    expect: { code: /^(?:exception|memory-exceeded)$/ },
    // What it has kept may be more than the isolate is left with.
    again: 'any',
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => socket.pause())
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N17c', 'a server that sends without end to a function that never reads', {
    handler: `${TARGET}
      const { socket, connected } = open(host, port);
      await connected;
      socket.send(HELLO);
      await new Promise((resolve) => setTimeout(resolve, 500));
      socket.stop();
      return new Response('fine');`,
    attack: async ({ t, call }) => {
      let sentBytes = 0
      const upstream = await startRawUpstream(t, (socket) => {
        socket.prependOnceListener('close', () => (sentBytes = socket.bytesWritten))
        writeForever(socket, Buffer.alloc(65_536))
      })
      const answer = await call(`/?port=${upstream.port}`)
      await comes(t, 'the connection is closed', upstream.untilClosed())
      t.ok(sentBytes < MOST_SENT_BYTES, `the server could send ${sentBytes} bytes`)
      return { answers: [answer] }
    },
  }),
  socketCase('N17d', 'a server that sends without end to a function that reads 100 MB of it', {
    limits: { cpuMs: 10_000 },
    handler: `${TARGET}
      let got = 0;
      const opened = open(host, port, { on: { data(bytes) {
        got += bytes.length;
        opened.socket.took(bytes.length);
        if (got > 100e6) done();
      } } });
      let done;
      const all = new Promise((resolve) => { done = resolve });
      await opened.connected;
      opened.socket.send(HELLO);
      await all;
      opened.socket.stop();
      return new Response('fine');`,
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => writeForever(socket, Buffer.alloc(65_536)))
      const answer = await call(`/?port=${upstream.port}`)
      await comes(t, 'the connection is closed', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
  socketCase('N17e', 'a function that says it has taken more than came', {
    handler: `${TARGET}
      const socket = await hello(host, port);
      for (const bytes of [1e9, -1, NaN, Infinity, 2 ** 53]) socket.took(bytes);
      await new Promise((resolve) => setTimeout(resolve, 300));
      socket.stop();
      return new Response('fine');`,
    attack: async ({ t, call }) => {
      let sentBytes = 0
      const upstream = await startRawUpstream(t, (socket) => {
        socket.prependOnceListener('close', () => (sentBytes = socket.bytesWritten))
        writeForever(socket, Buffer.alloc(65_536))
      })
      const answer = await call(`/?port=${upstream.port}`)
      await comes(t, 'the connection is closed', upstream.untilClosed())
      t.ok(sentBytes < MOST_SENT_BYTES, `the server could send ${sentBytes} bytes`)
      return { answers: [answer] }
    },
  }),
  socketCase('N17f', 'a server that resets the connection', {
    handler: `${TARGET}
      const end = await new Promise(async (resolve) => {
        await hello(host, port, { on: { closed: resolve } });
      });
      return new Response(end.ok ? 'no error' : end.code);`,
    expect: { status: 200, code: '', body: 'ECONNRESET' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => socket.resetAndDestroy())
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N17g', 'a server that closes its half, and hears what comes behind', {
    handler: `${TARGET}
      const heard = [];
      let opened;
      const ended = new Promise((resolve) => {
        opened = open(host, port, { on: {
          data(bytes) { heard.push(new TextDecoder().decode(bytes)); opened.socket.took(bytes.length) }, ended: resolve,
        } });
      });
      await opened.connected;
      opened.socket.send(HELLO);
      await ended;
      opened.socket.send(bytesOf('behind\\r\\n\\r\\n'));
      opened.socket.end();
      await new Promise((resolve) => setTimeout(resolve, 100));
      return new Response(heard.join(''));`,
    expect: { status: 200, code: '', body: 'half' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket) => socket.end('half'))
      const answer = await call(`/?port=${upstream.port}`)
      await upstream.untilRequests(2)
      await comes(t, 'the connection is closed', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
  socketCase('N17h', 'a server that answers TLS with something else', {
    handler: `${TARGET}
      const tls = { serverName: '', isVerified: false, alpn: [] };
      return new Response(await open(host, port, { more: { tls } }).connected.then(() => 'connected', (error) => 'refused: ' + error.message));`,
    expect: { status: 200, code: '', body: /^refused: E/ },
    attack: async ({ t, call }) => {
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.write('SSH-2.0-OpenSSH_9.9\r\n'.repeat(100))
      })
      await new Promise<void>((resolve) => server.listen(0, UPSTREAM_ADDRESS, resolve))
      t.teardown(() => server.close())
      return { answers: [await call(`/?port=${(server.address() as { port: number }).port}`)] }
    },
  }),
  socketCase('N17i', 'a key whose decryption takes hours', {
    handler: `${TARGET}
      const tls = { serverName: '', isVerified: false, alpn: [], key: ${JSON.stringify(HOURS)}, passphrase: 'x' };
      return new Response(await open(host, port, { more: { tls } }).connected.then(() => 'connected', (error) => 'refused: ' + error.message));`,
    expect: { status: 200, code: '', body: /^refused: ERR_INVALID_ARG_VALUE: .*encrypted/ },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N17j', 'a server whose WebSocket sends empty pongs, as fast as it can', {
    handler: `${TARGET}
      const more = { kind: 'websocket', url: 'ws://' + host + ':' + port + '/', protocols: [], headers: [] };
      const { socket, connected } = open(host, port, { more });
      await connected;
      await new Promise((resolve) => setTimeout(resolve, 500));
      socket.stop();
      return new Response('fine');`,
    expect: { status: 200, code: '', body: 'fine' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, (socket, head) => {
        const key = /sec-websocket-key: (\S+)/i.exec(head)?.[1] ?? ''
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
        const lines = ['HTTP/1.1 101 Up', 'upgrade: websocket', 'connection: upgrade', `sec-websocket-accept: ${accept}`]
        socket.write(`${lines.join('\r\n')}\r\n\r\n`)
        writeForever(socket, Buffer.alloc(65_536, Buffer.of(0x8a, 0)))
      })
      const answer = await call(`/?port=${upstream.port}`)
      await comes(t, 'the connection is closed', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
]

const FLOODS = [
  socketCase('N18a', 'a flood of sockets that stay open', {
    verdict: 'OK',
    limits: { cpuMs: 10_000 },
    handler: `${TARGET}
      const all = Array.from({ length: 3000 }, () => open(host, port));
      const settled = await Promise.allSettled(all.map(({ connected }) => connected));
      const connected = settled.filter(({ status }) => status === 'fulfilled').length;
      const refused = settled.filter(({ reason }) => /not more/.test(reason?.message)).length;
      for (const { socket } of all) socket?.stop();
      return new Response(connected <= 500 && refused === 2500 ? 'limited' : connected + ' connected, ' + refused + ' refused');`,
    expect: { status: 200, code: '', body: 'limited' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N18b', 'sockets that are opened and stopped in a loop', {
    verdict: 'E',
    limits: { cpuMs: 300, wallMs: 3_000 },
    handler: `${TARGET}
      for (;;) { for (let index = 0; index < 400; index++) open(host, port).socket.stop(); await new Promise((next) => setTimeout(next, 0)); }`,
    // Whichever limit comes first.
    expect: { code: /^(?:cpu-exceeded|timeout)$/ },
    again: 'any',
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      return { answers: [await call(`/?port=${upstream.port}`)] }
    },
  }),
  socketCase('N18c', 'sockets of an isolate that is ended', {
    verdict: 'K',
    billed: 'cap',
    limits: { cpuMs: 50 },
    handler: `${TARGET} for (let index = 0; index < 50; index++) await hello(host, port); for (;;);`,
    expect: { code: 'cpu-exceeded' },
    attack: async ({ t, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const answer = await call(`/?port=${upstream.port}`)
      await comes(t, 'the connections are closed', upstream.untilClosed())
      return { answers: [answer] }
    },
  }),
]

export const NETWORK_SOCKET_CASES: readonly IsolationCase[] = [...ADDRESSES, ...SERVERS, ...FLOODS]
