import fc from 'fast-check'
import t from 'tap'
import { checkHostList, isListed } from '../src/host-list.ts'
import { fetcher, text, upstream } from './fixtures/upstream.ts'

const allows = (entry: string, url: string): boolean => isListed(checkHostList([entry]), new URL(url))

t.test('an entry is written as URLs write it', async (t) => {
  const written: Record<string, string> = {
    'api.example.com': 'api.example.com',
    'API.Example.COM': 'api.example.com',
    'api.example.com.': 'api.example.com',
    '*.example.org:443': '*.example.org:443',
    'bücher.example': 'xn--bcher-kva.example',
    '*.BÜCHER.example': '*.xn--bcher-kva.example',
    'example.com:08080': 'example.com:8080',
    '127.1': '127.0.0.1',
    '0x7f.1:80': '127.0.0.1:80',
    '[::1]': '[::1]',
    '[0:0::1]:443': '[::1]:443',
    'localhost': 'localhost',
  }
  for (const [entry, expected] of Object.entries(written)) t.same(checkHostList([entry]), [expected], entry)
})

t.test('what is no host is refused by name', async (t) => {
  const entries = [
    '',
    ' ',
    '*',
    '*.',
    '*.*.com',
    'a.*.com',
    'https://example.com',
    'example.com/',
    'example.com/x',
    'user@example.com',
  ]
  const more = [
    'example.com:0',
    'example.com:65536',
    'example.com:x',
    'example.com:',
    'a b',
    'exa\tmple.com',
    'a\nb',
    'a#b',
    'a?b',
    'a\\b',
    '%65xample.com',
    '::1',
    '[::1',
    '[::g]',
    '*.127.0.0.1',
    '*.[::1]',
    '1.2.3.4.5',
    'x'.repeat(301),
    'a..b:1:2',
  ]
  for (const entry of [...entries, ...more])
    t.throws(
      () => checkHostList(['fine.example', entry]),
      { code: 'invalid-config', message: JSON.stringify(entry.slice(0, 80)).slice(0, -1) },
      entry,
    )
  t.throws(() => checkHostList(Array.from({ length: 101 }, () => 'a.example')), {
    code: 'invalid-config',
    message: /101 entries; the limit is 100/,
  })
  t.same(checkHostList([]), [])
})

t.test('a name is that name, on every port or on one', async (t) => {
  t.ok(allows('api.example.com', 'https://api.example.com/'))
  t.ok(allows('api.example.com', 'http://API.example.com.:8080/x?y'))
  t.ok(allows('api.example.com:443', 'https://api.example.com/'))
  t.ok(allows('api.example.com:80', 'http://api.example.com/'))
  t.notOk(allows('api.example.com:443', 'http://api.example.com/'))
  t.notOk(allows('api.example.com:443', 'https://api.example.com:8443/'))
  for (const url of [
    'https://example.com/',
    'https://x.api.example.com/',
    'https://api.example.com.evil.example/',
    'https://api-example.com/',
    'https://evil.example/api.example.com',
    'https://evil.example/?api.example.com',
    'https://evil.example#@api.example.com',
  ])
    t.notOk(allows('api.example.com', url), url)
  t.notOk(isListed([], new URL('https://api.example.com/')), 'an empty list has none')
})

t.test('a star stands for any names below', async (t) => {
  t.ok(allows('*.example.org', 'https://a.example.org/') && allows('*.example.org', 'https://a.b.example.org./'))
  t.ok(allows('*.example.org:443', 'https://a.example.org/'))
  for (const url of [
    'https://example.org/',
    'https://.example.org/',
    'https://badexample.org/',
    'https://a.example.org.evil.example/',
    'https://a.example.com/',
  ])
    t.notOk(URL.canParse(url) && allows('*.example.org', url), url)
  t.notOk(allows('*.example.org:443', 'https://a.example.org:444/'))
})

t.test('a list of one URL has exactly the host and port of that URL', async () => {
  const names = fc.domain()
  const ports = fc.constantFrom('', ':80', ':443', ':8080')
  fc.assert(
    fc.property(names, names, ports, ports, (name, other, port, otherPort) => {
      const list = checkHostList([`${name}${port}`])
      const same = isListed(list, new URL(`https://${name}${port}/`))
      const url = new URL(`https://${other}${otherPort}/`)
      const expected = name === other && (port === '' || new URL(`https://${name}${port}/`).port === url.port)
      return same && isListed(list, url) === expected
    }),
  )
})

t.test('each hop of a fetch is held to the list of its function, before its name is looked up', async (t) => {
  const asked: string[] = []
  const origin = await upstream(t, (request, response) => {
    if (request.url === '/moved') response.writeHead(302, { location: 'http://secret-data.evil.example/' }).end()
    else response.end('here')
  })
  const { port } = new URL(origin)
  const fetch = fetcher({
    resolve: async (hostname) => {
      asked.push(hostname)
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  const hosts = checkHostList([`*.example.org:${port}`])
  t.equal(text(await fetch(`http://api.example.org:${port}/`, { hosts })), 'here')
  const refused = {
    ok: false,
    end: 'refused',
    message: 'secret-data.evil.example is not among the hosts that this function may fetch from ("egress" in its config).',
  } as const
  t.match(await fetch('http://secret-data.evil.example/', { hosts }), { ...refused, bytesOut: 0 })
  t.match(await fetch(`http://api.example.org:${port}/moved`, { hosts }), refused)
  t.match(await fetch(`http://api.example.org:${port}/`, { hosts: [] }), { ok: false, end: 'refused' })
  t.same([...new Set(asked)], ['api.example.org'])
})
