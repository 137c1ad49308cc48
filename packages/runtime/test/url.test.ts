import fc from 'fast-check'
import t from 'tap'
import { run } from './support/guest.ts'

type Parsed = Record<string, unknown> | null

const FIELDS = [
  'href',
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const

function parseInNode(input: string, base: string | undefined): Parsed {
  if (!URL.canParse(input, base)) return null
  const url = new URL(input, base)
  return Object.fromEntries(FIELDS.map((field) => [field, url[field]]))
}

/** Parses many URLs in one guest. */
function parseInGuest(cases: readonly (readonly [string, string | undefined])[]): Parsed[] {
  const body = JSON.stringify(cases.map(([input, base]) => [input, base ?? null]))
  return run(
    `return (JSON.parse(await request.text())).map(([input, base]) => {
      if (!URL.canParse(input, base ?? undefined)) return null
      const url = new URL(input, base ?? undefined)
      return Object.fromEntries(${JSON.stringify(FIELDS)}.map((field) => [field, url[field]]))
    })`,
    { method: 'POST', bodyKind: 'text', body },
  ) as Parsed[]
}

const BASES = [
  undefined,
  'http://u:p@example.com:81/a/b/../c?q#f',
  'file:///C:/dir/file',
  'data:text/plain,x',
  'foo://host/x/y',
  'file://host/a',
]

const INPUTS = [
  'http://example.com',
  'HTTP://EXAMPLE.com:80/',
  'https://example.com:443/a',
  'http://a@b@c/',
  'http://a:b:c@d/',
  'http://:@h/',
  'http://@/',
  'http://a:b@/',
  '//other/x',
  '/rooted',
  'relative',
  './a/../b/./c',
  '../..',
  '..',
  '.',
  '',
  '?q',
  '#f',
  '?',
  '#',
  'a?b#c?d#e',
  '\\\\back\\slash',
  'http:\\\\x\\y',
  'http:rel',
  'http:/abs',
  'http:///x',
  'https:x',
  'http://[::1]/',
  'http://[1:2:0:0:5:0:0:0]/',
  'http://[::1.2.3.4]',
  'http://[1::2::3]',
  'http://[::1',
  'http://[g::1]',
  'http://[1:2:3:4:5:6:7:8:9]',
  'http://[::127.0.0.01]',
  'http://[0:0:0:1:0:0:0:0]',
  'http://[1:2:3:4:5:6:7::]',
  'http://1.2.3.4',
  'http://0x7f.1',
  'http://017700000001',
  'http://256.1.1.1',
  'http://1.2.3.4.5',
  'http://1.2.3.',
  'http://4294967295',
  'http://4294967296',
  'http://1.2.3.09',
  'http://foo.0x',
  'http://foo.1',
  'http://0x',
  'http://.',
  'http://a..b',
  'http://1e2',
  'http://h:65535/',
  'http://h:65536/',
  'http://h:/',
  'http://h:0080/',
  'http://h:8a/',
  'http://h:-1/',
  'http:// h/',
  'http://h h/',
  'http://h%20/',
  'http://%41.com',
  'http://a%2fb',
  'http://a%00b',
  'http://h^x',
  "http://a_b~c!$&'()*+,;=/",
  'http://münchen.de',
  'http://MÜNCHEN.de',
  'http://faß.de',
  'http://日本語。jp',
  'http://xn--mnchen-3ya.de',
  'http://xn--a',
  'http://xn--',
  'http://a\u00adb.com',
  'http://\uff41.com',
  'http://GO\u200b.com',
  'http://\u2603.net',
  'http://💩.la',
  'http://\u0301x.de',
  'http://ẞ.de',
  'http://\u212a.com',
  'http://ab\ufdd0',
  'http://xn--a.ä',
  'http://xn--mnchen-3ya.ä',
  'http://XN--MNCHEN-3YA.ä',
  'http://ä\u3002\u00df.de',
  'http://İ.com',
  'http://ﬁ.com',
  'http://a\u200db.com',
  'http://Ω.gr',
  'http://क\u094d\u200dष.com',
  'http://نامه\u200cای.com',
  'http://a\u200cb.com',
  'http://h{`}"',
  'http://xn--zca.de',
  'http://-a-.com',
  'http://a--b.com',
  'file:',
  'file:x',
  'file:/x',
  'file://x',
  'file:///x',
  'file://localhost/x',
  'file:C|/a',
  'file:///C|/../..',
  'file:///C:/..',
  'file://C:/a',
  '/D:/x',
  'D:/x',
  'D|',
  '/..//x',
  'file:////x',
  'file:..',
  'file:?q',
  'file:#f',
  'file://h:80/',
  'file:\\c:\\x',
  'C|a',
  'mailto:a@b.c',
  'data:x y z ',
  'data: x ?q ',
  'javascript:alert(1)',
  'foo:',
  'foo:/',
  'foo://',
  'foo:///',
  'foo:////p',
  'foo:/..//p',
  'foo:/.//p',
  'foo://h%20x/',
  'foo://h x/',
  'foo://H/',
  'foo://h:99999/',
  'foo://:80/',
  'foo://u@/',
  'foo://u@h',
  'foo:a#',
  'blob:https://h:1/x',
  'blob:x',
  'ws://h:80',
  'wss://h:443/x',
  'ftp://h:21/',
  'non-special:opaque \x01 text',
  'http://h/%7Ea/%zz/ä/"<>`{}|^',
  'http://h/?ä\'"<>`{}|^',
  'foo://h/?ä\'"<>`',
  'http://h/#ä\'"<>`{}',
  'http://u ser:p"w@h/',
  'http://u;=@h',
  'http://h/a b',
  '  http://h/  ',
  'ht\ntp://h\t/x\r',
  'http://h/\ud800x',
  '1http://x',
  '+a:b',
  'a+b:c',
  ':x',
  '::',
  '//',
  '///',
  '////x',
  '/\\x',
  '\\/x',
  'http://h/a/%2e%2E/b',
  'http://h/a/.%2e',
  'http://h/a/%2e',
  '/a//b',
  'http://h?x',
  'http://h#x',
  'http:?q',
  'http:#f',
  'http:',
  'foo',
  '#a b',
  '?a b',
]

t.test('URLs are parsed as in Node.js', (t) => {
  const cases = BASES.flatMap((base) => INPUTS.map((input) => [input, base] as const))
  const parsed = parseInGuest(cases)
  for (const [index, [input, base]] of cases.entries()) {
    t.same(parsed[index], parseInNode(input, base), `${JSON.stringify(input)} against ${base}`)
  }
  t.end()
})

t.test('URLs made at random are parsed as in Node.js', (t) => {
  const part = fc.constantFrom(
    'http:',
    'https:',
    'file:',
    'foo:',
    '/',
    '//',
    '\\',
    '?',
    '#',
    '@',
    ':',
    '.',
    '..',
    '%2e',
    'a',
    'B',
    'c:',
    'c|',
    'h.com',
    '80',
    '443',
    '99999',
    ' ',
    '\t',
    '%',
    '%41',
    'ä',
    '[::1]',
    '[',
    ']',
    '1.2.3.4',
    '0x1',
    '|',
    '"',
    "'",
    '<',
    '`',
    '{',
    '^',
    '\ud83d\ude00',
    'localhost',
    'xn--',
    '-',
    '+',
    '&',
    '=',
    ';',
  )
  const texts = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''))
  const samples = fc.sample(fc.tuple(texts, fc.constantFrom(...BASES)), { numRuns: 20_000, seed: 26 })
  const parsed = parseInGuest(samples)
  const wrong = samples.filter(
    ([input, base], index) => JSON.stringify(parsed[index]) !== JSON.stringify(parseInNode(input, base)),
  )
  t.same(wrong.slice(0, 20), [])
  t.end()
})

t.test('Setters change URLs as in Node.js', (t) => {
  const starts = [
    'http://u:p@h.com:81/a/b?q#f',
    'file:///C:/x',
    'mailto:a@b',
    'foo://h:1/p',
    'foo:/p',
    'https://h/',
    'file://h/x',
  ]
  const values: Record<string, string[]> = {
    protocol: ['https', 'ftp:', 'foo', 'file', '1x', 'http:x', '', 'ws\n'],
    username: ['me', '', 'a b:@/'],
    password: ['pw', '', 'a b:@/'],
    host: [
      'x.org',
      'x.org:82',
      'x.org:443',
      '',
      ':90',
      'x:9x',
      '[::1]:5',
      'a b',
      'x/y',
      'x?y',
      'x\\y',
      'localhost',
      'EX.com',
      'h:',
    ],
    hostname: ['x.org', 'x.org:82', '', '[::1]', 'a b', 'x/y', '1.2.3', 'localhost'],
    port: ['90', '', '80', '443', '99999', '8x', 'x', '0090', ' 9', '6\n5'],
    pathname: ['/n', 'n', '', '?x', '#x', 'a/../b', '\\x\\y', '//x', 'ä b', 'C|/y'],
    search: ['?n', 'n', '', '?', '??', 'a#b', "a'b ä", '#'],
    hash: ['#n', 'n', '', '#', '##', 'a b`<'],
    href: ['http://other/', 'nonsense'],
  }
  const cases = starts.flatMap((start) =>
    Object.entries(values).flatMap(([field, list]) => list.map((value) => [start, field, value] as const)),
  )
  const change = (start: string, field: string, value: string): string => {
    const url = new URL(start)
    try {
      ;(url as unknown as Record<string, string>)[field] = value
    } catch {
      return 'threw'
    }
    return url.href
  }
  const changed = run(
    `const change = ${change.toString()}
    return JSON.parse(await request.text()).map((item) => change(...item))`,
    { method: 'POST', bodyKind: 'text', body: JSON.stringify(cases) },
  ) as string[]
  for (const [index, item] of cases.entries()) t.equal(changed[index], change(...item), item.join(' | '))
  t.end()
})

t.test('URL throws a TypeError for what it cannot parse', (t) => {
  t.equal(
    run(`try { new URL('nope') } catch (error) { return error.name + ': ' + error.message }`),
    'TypeError: Invalid URL: "nope"',
  )
  t.same(run(`return [URL.parse('nope'), URL.parse('/x', 'http://h').href, URL.canParse('http://h')]`), [
    null,
    'http://h/x',
    true,
  ])
  t.end()
})

t.test('searchParams and the URL follow each other', (t) => {
  t.same(
    run(`
      const url = new URL('http://h/?a=1&b=2&a=3')
      const { searchParams } = url
      searchParams.append('c', 'ä &')
      const first = url.href
      url.search = '?z=9'
      const second = [...searchParams]
      searchParams.delete('z')
      return [first, second, url.href, searchParams === url.searchParams]`),
    ['http://h/?a=1&b=2&a=3&c=%C3%A4+%26', [['z', '9']], 'http://h/', true],
  )
  t.end()
})

t.test('URLSearchParams behaves as in Node.js', (t) => {
  const body = (): unknown => {
    const results: unknown[] = []
    const inputs = ['a=1&b=2', '?a=1', 'a', '=', '&&a=b&', 'a=%zz%41+%20', '%ff=%e4', 'ä=ö&😀', 'a=b=c', '']
    for (const input of inputs) results.push([...new URLSearchParams(input)], new URLSearchParams(input).toString())
    const params = new URLSearchParams({ b: '1', a: "!'()*~ +" })
    params.append('b', '2')
    results.push(
      params.get('b'),
      params.get('x'),
      params.getAll('b'),
      params.has('b'),
      params.has('b', '2'),
      params.has('b', '9'),
    )
    params.sort()
    results.push(params.toString(), params.size, [...params.keys()], [...params.values()])
    params.set('b', 'only')
    params.delete('a', 'other')
    results.push(String(params))
    params.delete('a')
    results.push(String(params), new URLSearchParams([['x', 'y']]).toString(), new URLSearchParams(params).toString())
    params.forEach((value, name) => results.push(value, name))
    try {
      results.push(new URLSearchParams([['one']]).size)
    } catch (error) {
      results.push((error as Error).name)
    }
    return results
  }
  t.same(run(`return (${body.toString()})()`), JSON.parse(JSON.stringify(body())))
  t.end()
})
