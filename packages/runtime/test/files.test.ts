/** Blob, File, FormData with files, multipart both ways, and URLs that have their content in themselves. */
import fc from 'fast-check'
import t from 'tap'
import { guestOf, run } from './support/guest.ts'

t.test('a form with files comes back as it was sent', (t) => {
  t.same(
    run(`
      const form = new FormData()
      form.append('text "quoted"\\r\\n', 'one\\ntwo')
      form.append('ä', 'ö')
      form.append('file', new File([new Uint8Array([0, 255, 13, 10, 45, 45])], 'ü".bin', { type: 'a/b', lastModified: 1 }))
      form.append('blob', new Blob(['x']), 'named.txt')
      form.append('blob', new Blob([]))
      const response = new Response(form)
      const type = response.headers.get('content-type')
      const read = await response.formData()
      const entries = []
      for (const [name, value] of read) entries.push(typeof value === 'string' ? [name, value] : [name, value.name, value.type, [...await value.bytes()]])
      return [/^multipart\\/form-data; boundary=\\S+$/.test(type), entries]`),
    [
      true,
      [
        ['text "quoted"\r\n', 'one\r\ntwo'],
        ['ä', 'ö'],
        ['file', 'ü".bin', 'a/b', [0, 255, 13, 10, 45, 45]],
        ['blob', 'named.txt', 'application/octet-stream', [120]],
        ['blob', 'blob', 'application/octet-stream', []],
      ],
    ],
  )
  t.end()
})

/** What a body gives as a form: its entries, or why it is none. */
const READ = `
  try {
    const form = await request.formData()
    return Response.json([...form].map(([name, value]) => [name, typeof value === 'string' ? value : [value.name, value.type, value.size]]))
  } catch (error) { return Response.json(error.name + ': ' + error.message) }`

function readForm(body: string, type = 'multipart/form-data; boundary=x'): unknown {
  const guest = guestOf(READ)
  try {
    const headers = [['content-type', type]] as [string, string][]
    return JSON.parse(guest.call({ method: 'POST', headers, bodyKind: 'bytes', body }).body)
  } finally {
    guest.isolate.dispose()
  }
}

t.test('a form is read as clients write them', (t) => {
  const part = (head: string, content: string): string => `--x\r\n${head}\r\n\r\n${content}\r\n`
  const named = 'Content-Disposition: form-data; name="a"'
  t.same(readForm(`${part(named, '1')}--x--\r\n`), [['a', '1']])
  t.same(readForm(`${part(named, '1')}--x--`), [['a', '1']], 'without a line break at the end')
  t.same(readForm(`\r\n${part(named, '')}--x--`), [['a', '']], 'with one in front')
  t.same(readForm(`--x--`), [], 'without parts')
  t.same(readForm(`${part(`${named}; filename="f.txt"`, 'xyz')}--x--`), [['a', ['f.txt', 'text/plain', 3]]])
  t.same(readForm(`${part(`content-type: a/b\r\ncontent-disposition:form-data;filename=f;name=a`, '')}--x--`), [
    ['a', ['f', 'a/b', 0]],
  ])
  t.same(readForm(`${part(named, '--x')}--x--`), [['a', '--x']], 'the boundary without a line break before it')
  t.same(readForm(`${part(named, '1')}--x--`, 'multipart/form-data; boundary="x"; charset=utf-8'), [['a', '1']])
  t.same(readForm(`${part(`${named}\r\nContent-Transfer-Encoding: base64`, 'aGk=')}--x--`), [['a', 'hi']])
  t.match(
    readForm(`${part(`${named}\r\nContent-Transfer-Encoding: base64`, 'a*k=')}--x--`),
    /TypeError: The form cannot be read: a part is no base64 \(at byte \d+\)/,
  )
  t.same(readForm('a=1&b=%C3%A4', 'application/x-www-form-urlencoded'), [
    ['a', '1'],
    ['b', 'ä'],
  ])
  t.end()
})

t.test('what is no form is refused, with what is wrong and where', (t) => {
  const bodies: Readonly<Record<string, readonly [string, RegExp]>> = {
    'nothing': ['', /the boundary is missing \(at byte 0\)/],
    'another boundary': ['--y\r\n\r\n', /the boundary is missing/],
    'cut off in the head': ['--x\r\nContent-Disposition: form-data; na', /the head of a part has no end/],
    'cut off in the content': ['--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nabc', /the last part has no end/],
    'no name': ['--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--', /a part has no name/],
    'no disposition': ['--x\r\nContent-Type: a/b\r\n\r\n1\r\n--x--', /a part has no name/],
    'an attachment': ['--x\r\nContent-Disposition: attachment; name="a"\r\n\r\n1\r\n--x--', /a part is no form-data/],
    'a line without a colon': ['--x\r\nContent-Disposition\r\n\r\n1\r\n--x--', /a line without a name/],
    'a head without end': [`--x\r\na: ${'b'.repeat(20_000)}\r\n\r\n1\r\n--x--`, /The head of a part has more than 16384 bytes/],
    'too many parts': [
      `${'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(10_001)}--x--`,
      /The form has more than 10000 parts/,
    ],
  }
  for (const [title, [body, error]] of Object.entries(bodies)) t.match(readForm(body), error, title)
  t.match(readForm('--x--', 'multipart/form-data'), /The content type of the form names no boundary/)
  t.match(readForm('--x--', 'text/plain'), /A body of content type "text\/plain" cannot be read as form data/)
  t.end()
})

t.test('whatever the bytes are, reading them as a form ends, in time that goes with their number', (t) => {
  const guest = guestOf(READ)
  const pieces = [
    '--x',
    '\r\n',
    '--',
    '\r',
    '\n',
    'Content-Disposition: form-data; name="a"',
    ';',
    '"',
    'filename=',
    'a',
    '\0',
    '\xff',
    ':',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 40 }), (parts) => {
      const headers = [['content-type', 'multipart/form-data; boundary=x']] as [string, string][]
      JSON.parse(guest.call({ method: 'POST', headers, bodyKind: 'bytes', body: parts.join('') }).body)
    }),
    { numRuns: 300 },
  )
  // What would take the square of its length: boundaries that begin and do not end.
  for (const hostile of ['\r\n--', '\r\n-', '\r\n--x', '--x\r\n']) {
    const body = `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n${hostile.repeat(1_000_000 / hostile.length)}`
    const headers = [['content-type', 'multipart/form-data; boundary=xx']] as [string, string][]
    t.match(guest.call({ method: 'POST', headers, bodyKind: 'bytes', body }).body, /TypeError/)
  }
  t.end()
})

t.test('Blob and File are what Node.js has them be', (t) => {
  t.same(
    run(`
      const blob = new Blob(['a', new Uint8Array([98]), new Blob(['c']), new DataView(new ArrayBuffer(1))], { type: 'A/B' })
      const file = new File(['\\r\\n'], 'n', { endings: 'native', lastModified: 5 })
      const clone = structuredClone({ file }).file
      const refused = (make) => { try { make(); return 'made' } catch (error) { return error.name } }
      return [
        blob.size, blob.type, await blob.text(), await blob.slice(1, -1).text(), blob.slice(0, 1, 'c/d').type,
        (await new Response(blob).arrayBuffer()).byteLength, new Response(blob).headers.get('content-type'),
        file.size, file.name, file.lastModified, file instanceof Blob, clone.name, clone.lastModified, clone !== file,
        (await new Response('x', { headers: { 'content-type': 'Text/Plain;Charset=UTF-8' } }).blob()).type,
        String(blob), String(file), refused(() => new Blob('a')), refused(() => new File([])), refused(() => structuredClone(new FormData())),
        (await Array.fromAsync(new Blob(['x'.repeat(100_000)]).stream())).map((chunk) => chunk.length),
      ]`),
    [
      4,
      'a/b',
      'abc\0',
      'bc',
      'c/d',
      4,
      'a/b',
      1,
      'n',
      5,
      true,
      'n',
      5,
      true,
      'text/plain;charset=UTF-8',
      '[object Blob]',
      '[object File]',
      'TypeError',
      'TypeError',
      'DataCloneError',
      [65_536, 34_464],
    ],
  )
  t.end()
})

t.test('data: and blob: URLs are fetched without the host', (t) => {
  const guest = guestOf(`
    const of = async (url) => { const response = await fetch(url); return [response.status, response.headers.get('content-type'), await response.text()] }
    const url = URL.createObjectURL(new Blob(['kept'], { type: 'a/b' }))
    const found = [await of('data:,a%20b'), await of('data:text/html;base64,PGI+#x'), await of(url)]
    URL.revokeObjectURL(url)
    const failed = []
    for (const wrong of ['data:a', 'data:;base64,*', url]) await fetch(wrong).catch((error) => failed.push(error.name))
    return Response.json([found, failed])`)
  t.same(JSON.parse(guest.call().body), [
    [
      [200, 'text/plain;charset=US-ASCII', 'a b'],
      [200, 'text/html', '<b>'],
      [200, 'a/b', 'kept'],
    ],
    ['TypeError', 'TypeError', 'TypeError'],
  ])
  t.equal(guest.fetches.size, 0)
  guest.isolate.dispose()
  t.end()
})
