/**
 * Group C5 of the list of attacks, first part: functions reach the public internet and what the operator opened, by whatever
 * name they ask.
 */
import { createServer, type AddressInfo } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import type { IsolationCase } from '../harness/isolation-case.ts'
import type { Rig } from '../harness/rig.ts'
import { outcomesIn, tryAll, TRY_ALL, type Attempt } from '../support-b/fetch-attempts.ts'

type Check = NonNullable<IsolationCase['check']>

/** Every fetch rejects, as fetch rejects; the runner sees that no canary was touched. */
const allRefused: Check = ({ t }, { answers }) => {
  const answered = outcomesIn(answers).filter((outcome) => !outcome.startsWith('TypeError: '))
  t.strictSame(answered, [], 'none was answered')
}

function refuses(
  id: string,
  title: string,
  attempts: (rig: Rig) => readonly Attempt[],
  more: Partial<IsolationCase> = {},
): IsolationCase {
  return {
    id,
    group: 'network',
    title,
    verdict: 'R',
    billed: 'full',
    handler: TRY_ALL,
    attack: tryAll(attempts),
    check: allRefused,
    ...more,
  }
}

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

/** URLs of the canary on 127.0.0.1 under other names. */
function atCanary(hosts: string): (rig: Rig) => Attempt[] {
  return ({ canary }) => words(hosts).map((host) => ({ url: `http://${host}:${canary.port}/` }))
}

function at(hosts: string): () => Attempt[] {
  return () => words(hosts).map((host) => ({ url: `http://${host}/` }))
}

const LOOPBACK = [
  refuses(
    'N01a',
    'fetches of the loopback address in all spellings of IPv4',
    atCanary(`
      127.0.0.1 127.1 127.0.1 127.0.0.1. 2130706433 0x7f.1 0x7f000001 017700000001 0177.0.0.01
      0.0.0.0 0 127.255.255.254 １２７.０.０.１ 127。0。0。1 ①②⑦.⓪.⓪.① %31%32%37.0.0.1`),
  ),
  refuses(
    'N01b',
    'fetches of the loopback address in all forms of IPv6',
    atCanary(`
      [::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::ffff:0:127.0.0.1]
      [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [::1%25lo]`),
  ),
  refuses(
    'N01c',
    'fetches of names that mean this machine',
    atCanary(`localhost LOCALHOST localhost. a.localhost ${hostname()}`),
  ),
  refuses('N01d', 'fetches of URLs that parsers read in different ways', ({ canary, upstream }) => {
    const ok = new URL(upstream.url).host
    const canaryHost = `127.0.0.1:${canary.port}`
    return [
      `http://${ok}@${canaryHost}/`,
      `http://${canaryHost}#@${ok}/`,
      `http://${canaryHost}\\@${ok}/`,
      `http://${canaryHost}?@${ok}/`,
      `http:${canaryHost}/`,
      `http:///${canaryHost}/`,
      `\thttp://127.0.\n0.1:${canary.port}/`,
      `http://${canaryHost.replace('.', '%2e')}/`,
      `//${canaryHost}/`,
    ].map((url) => ({ url }))
  }),
  refuses(
    'N01e',
    'a search for open ports',
    ({ canary }) => [81, 49_151, canary.port].map((port) => ({ url: `http://127.0.0.1:${port}/` })),
    {
      check: ({ t }, { answers }) => {
        const texts = new Set(outcomesIn(answers).map((outcome) => outcome.replace(/127\.0\.0\.1:\d+/, '<host>')))
        t.equal(texts.size, 1, `an open port and a closed one are refused in the same words: ${[...texts].join(' ')}`)
        t.notMatch([...texts][0], /refused the connection/)
      },
    },
  ),
]

const RANGES = [
  refuses('N02a', 'fetches of metadata services by address', () => [
    { url: 'http://169.254.169.254/latest/meta-data/' },
    { url: 'http://169.254.169.254/latest/api/token', method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } },
    { url: 'http://2852039166/' },
    { url: 'http://[fd00:ec2::254]/' },
    { url: 'http://[::ffff:a9fe:a9fe]/' },
    { url: 'http://100.100.100.200/' },
    { url: 'http://168.63.129.16/' },
    { url: 'http://169.254.170.2/v2/credentials' },
  ]),
  refuses('N02b', 'fetches of metadata services by name', at('metadata.google.internal metadata instance-data')),
  refuses(
    'N03a',
    'fetches of private, shared, link-local, multicast and reserved addresses',
    at(`
      10.0.0.1 172.16.0.1 172.31.255.254 192.168.1.1 100.64.0.1 169.254.1.1 192.0.0.1 198.18.0.1 224.0.0.1
      240.0.0.1 255.255.255.255 [fc00::1] [fd12:3456::1] [fe80::1] [fe80::1%25eth0] [ff02::1] [2001:db8::1]`),
  ),
  refuses('N03b', "fetches of the machine's own addresses", () => [], { attack: fetchOwnAddresses }),
  refuses('N03c', 'fetches of the gateway and of the control plane', ({ server }) => [
    { url: server.url },
    { url: `${server.adminUrl}/v1/functions` },
    { url: `${server.adminUrl}/metrics` },
    { url: server.adminUrl.replace('127.0.0.1', '[::ffff:127.0.0.1]') },
  ]),
]

/** On all of them something listens that must not be reached, but for what is opened or refused as loopback. */
async function fetchOwnAddresses({
  t,
  call,
}: Parameters<NonNullable<IsolationCase['attack']>>[0]): ReturnType<NonNullable<IsolationCase['attack']>> {
  let touches = 0
  const listener = createServer((socket) => {
    touches++
    socket.destroy()
  })
  await new Promise<void>((resolve) => listener.listen(0, '::', resolve))
  t.teardown(() => void listener.close())
  const { port } = listener.address() as AddressInfo
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses)
  const attempts = own.map(({ address, family }) => ({ url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/` }))
  const answer = await call('/', { method: 'POST', body: JSON.stringify(attempts) })
  t.equal(touches, 0, `${attempts.length} addresses, none reached`)
  return { answers: [answer] }
}

const OTHERS: IsolationCase[] = [
  // A URL with `data:` is answered, out of itself.
  refuses('N10a', 'fetches of other schemes', ({ canary }) =>
    [
      'file:///etc/passwd',
      'blob:null/0b4b3c1e-0000-4000-8000-000000000000',
      `unix:${canary.socketPath}`,
      `http+unix://${encodeURIComponent(canary.socketPath)}/`,
      'ftp://127.0.0.1/',
      'gopher://127.0.0.1/',
      'javascript:1',
      'node:fs',
      'about:blank',
    ].map((url) => ({ url })),
  ),
  refuses(
    'N10b',
    'fetches with options of Node that lead elsewhere',
    ({ canary, upstream }) =>
      [
        { socketPath: canary.socketPath },
        { dispatcher: { origin: `http://127.0.0.1:${canary.port}` } },
        { agent: { host: '127.0.0.1', port: canary.port } },
        { proxy: `http://127.0.0.1:${canary.port}` },
        { lookup: '127.0.0.1', localAddress: '127.0.0.1' },
      ].map((options) => ({ url: upstream.url, ...options })),
    {
      check: ({ t }, { answers }) =>
        t.ok(
          outcomesIn(answers).every((outcome) => outcome.startsWith('answered 200 pong')),
          'they are not looked at',
        ),
    },
  ),
  {
    id: 'N05',
    group: 'network',
    title: 'fetches of what the operator opened and the list of the function does not have',
    verdict: 'R',
    billed: 'full',
    files: {
      'index.js': `
        let seen = 0
        export default { async fetch(request, env) {
          if (request.url.endsWith('/again')) return new Response('seen ' + seen)
          seen++
          ${TRY_ALL}
        } }`,
      'carpool.config.json': '{ "egress": ["api.example.com", "*.example.org:443"] }',
    },
    attack: tryAll(({ upstream }) => [{ url: upstream.url }, { url: upstream.url.replace('127.0.0.2', '127.0.0.2.') }]),
    check: ({ t, rig }, { answers }) => {
      const before = rig.upstream.seen.filter(({ headers }) => headers['x-case'] === 'N05').length
      for (const outcome of outcomesIn(answers)) t.match(outcome, /^TypeError: .*127\.0\.0\.2/, 'the refusal names the host')
      t.equal(before, 0)
    },
  },
]

export const NETWORK_ADDRESS_CASES: readonly IsolationCase[] = [...LOOPBACK, ...RANGES, ...OTHERS]
