import fc from 'fast-check'
import t from 'tap'
import { run } from './support/guest.ts'

const byteArrays = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 12 }),
  fc.array(fc.constantFrom(0xef, 0xbb, 0xbf, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0xc0, 0x41, 0xf4, 0x90), {
    maxLength: 12,
  }),
)

t.test('TextDecoder decodes any bytes as Node.js does, whole and in pieces', (t) => {
  const samples = fc.sample(fc.tuple(byteArrays, fc.nat(12), fc.boolean(), fc.boolean()), { numRuns: 3000, seed: 7 })
  const decode = (bytes: number[], cut: number, fatal: boolean, ignoreBOM: boolean): string[] => {
    const attempt = (work: (decoder: TextDecoder) => string): string => {
      try {
        return work(new TextDecoder('utf-8', { fatal, ignoreBOM }))
      } catch (error) {
        return (error as Error).constructor.name
      }
    }
    const array = Uint8Array.from(bytes)
    const streamed = (decoder: TextDecoder): string =>
      decoder.decode(array.subarray(0, cut), { stream: true }) +
      decoder.decode(array.subarray(cut), { stream: true }) +
      decoder.decode()
    return [attempt((decoder) => decoder.decode(array)), attempt(streamed)]
  }
  const decoded = run(
    `const decode = ${decode.toString()}; return (JSON.parse(await request.text())).map((item) => decode(...item))`,
    {
      bodyKind: 'text',
      body: JSON.stringify(samples),
    },
  ) as string[][]
  const wrong = samples.filter((item, index) => JSON.stringify(decoded[index]) !== JSON.stringify(decode(...item)))
  t.same(wrong.slice(0, 10), [])
  t.end()
})

t.test('TextEncoder encodes any text as Node.js does', (t) => {
  const units = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd800, max: 0xdfff })),
    { maxLength: 20 },
  )
  const samples = fc.sample(fc.tuple(units, fc.nat(30)), { numRuns: 2000, seed: 7 })
  const encode = (list: number[], room: number): unknown => {
    const text = String.fromCharCode(...list)
    const target = new Uint8Array(room)
    const { read, written } = new TextEncoder().encodeInto(text, target)
    return [[...new TextEncoder().encode(text)], read, written, [...target]]
  }
  const encoded = run(
    `const encode = ${encode.toString()}; return (JSON.parse(await request.text())).map((item) => encode(...item))`,
    {
      bodyKind: 'text',
      body: JSON.stringify(samples),
    },
  ) as unknown[]
  const wrong = samples.filter((item, index) => JSON.stringify(encoded[index]) !== JSON.stringify(encode(...item)))
  t.same(wrong.slice(0, 10), [])
  t.end()
})

t.test('Long texts pass the codecs unharmed', (t) => {
  t.same(
    run(`
      const text = 'aé€😀'.repeat(30_000)
      const bytes = new TextEncoder().encode(text)
      return [bytes.length, new TextDecoder().decode(bytes) === text, new TextDecoder().decode(new TextEncoder().encode('x'.repeat(100_000))).length]`),
    [300_000, true, 100_000],
  )
  t.end()
})

t.test('latin1 and UTF-16 are there, under their labels', (t) => {
  t.same(
    run(`
      const bytes = (...list) => new Uint8Array(list)
      return [
        new TextDecoder('latin1').encoding, new TextDecoder('latin1').decode(bytes(0x41, 0x80, 0x9f, 0xe4)),
        new TextDecoder(' UTF-16 ').encoding, new TextDecoder('utf-16le').decode(bytes(0xff, 0xfe, 0x41, 0, 0x3d, 0xd8, 0x00, 0xde)),
        new TextDecoder('utf-16be').decode(bytes(0, 0x41, 0xd8, 0x3d)), new TextDecoder('utf-16le').decode(bytes(0x41)),
        new TextDecoder('UTF8', { fatal: 1 }).fatal, new TextDecoder().decode(), new TextDecoder().decode(bytes(65, 66).buffer), new TextDecoder().decode(new DataView(bytes(65, 66).buffer, 1)),
      ]`),
    ['windows-1252', 'A€Ÿä', 'utf-16le', 'A😀', 'A�', '�', true, '', 'AB', 'B'],
  )
  t.equal(run(`try { new TextDecoder('klingon') } catch (error) { return error.name }`), 'RangeError')
  t.equal(
    run(
      `try { new TextDecoder('utf-16le', { fatal: true }).decode(new Uint8Array([0, 0xd8])) } catch (error) { return error.name }`,
    ),
    'TypeError',
  )
  t.end()
})

t.test('atob and btoa follow the forgiving rules', (t) => {
  const inputs = [
    'YQ==',
    'YQ',
    'YQ=',
    'Y',
    ' Y Q = = ',
    'YWE=',
    'YWE==',
    '',
    '=',
    'a-b_',
    'AP8Q',
    'ab\ncd',
    'YR==',
    'é',
    'null',
    'ab=c',
    'abcd====',
  ]
  const decode = (text: string): string => {
    try {
      return atob(text)
    } catch (error) {
      return `${(error as Error).name} ${(error as DOMException).code}`
    }
  }
  const decoded = run(`const decode = ${decode.toString()}; return JSON.parse(await request.text()).map(decode)`, {
    bodyKind: 'text',
    body: JSON.stringify(inputs),
  })
  t.same(decoded, inputs.map(decode))
  t.same(run(`return [btoa('\\x00\\xff'), btoa(null), btoa('')]`), ['AP8=', 'bnVsbA==', ''])
  t.equal(run(`try { btoa('€') } catch (error) { return error.name }`), 'InvalidCharacterError')
  t.end()
})
