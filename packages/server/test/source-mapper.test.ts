import { SourceMap } from 'node:module'
import type { Revision } from '@carpool/core'
import t from 'tap'
import { mapStack, parseSourceMap, SourceMapper, type SourceMapperOptions } from '../src/source-mapper.ts'

// Line 3, column 5 of the bundle is line 1, column 1 of src/app.ts.
const map = new SourceMap({
  file: 'f.js',
  version: 3,
  sources: ['src/app.ts'],
  sourcesContent: [''],
  names: [],
  mappings: ';;IAAA',
  sourceRoot: '',
})

t.test('positions of the bundle become positions of the author', async (t) => {
  t.equal(mapStack('Error: x\n    at go (shop.js:3:5)', 'shop', map), 'Error: x\n    at go (src/app.ts:1:1)')
})

t.test('positions that the map does not know stay', async (t) => {
  t.equal(mapStack('at shop.js:1:1', 'shop', map), 'at shop.js:1:1')
})

t.test('frames of the guest runtime are left out', async (t) => {
  t.equal(mapStack('Error: x\n    at invoke (carpool:runtime:9:9)\n    at b', 'shop', map), 'Error: x\n    at b')
})

t.test('a text that is no source map is none', async (t) => {
  t.equal(parseSourceMap('{'), undefined)
  t.equal(parseSourceMap('null'), undefined)
})

const MAP = '{"version":3,"sources":["src/app.ts"],"names":[],"mappings":";;IAAA"}'
const MIB = 1024 * 1024

/** A mapper of maps of one MiB, which tells what it reads. */
function startMapper(options: SourceMapperOptions, read = async (): Promise<string> => MAP.padEnd(MIB)) {
  const reads: string[] = []
  const mapper = new SourceMapper((revision) => {
    reads.push(revision.id)
    return read()
  }, options)
  const map = (id: string): Promise<string> => mapper.map({ id, functionName: 'shop' } as Revision, 'at shop.js:3:5')
  return { reads, map }
}

t.test('the maps that were used last are kept, up to so many bytes', async (t) => {
  const { reads, map } = startMapper({ maxCachedBytes: 2.5 * MIB })
  for (const id of ['a', 'b', 'a', 'c', 'a', 'b']) t.equal(await map(id), 'at src/app.ts:1:1')
  t.strictSame(reads, ['a', 'b', 'c', 'b'], 'b was used least recently when c came')
})

t.test('a map is read once for all that ask while it is read', async (t) => {
  const { reads, map } = startMapper({})
  t.strictSame(new Set(await Promise.all([map('a'), map('a'), map('a')])), new Set(['at src/app.ts:1:1']))
  t.strictSame(reads, ['a'])
})

t.test('a map that could not be read is read again', async (t) => {
  const answers = [() => Promise.reject(new Error('no')), () => Promise.resolve(MAP)]
  const { reads, map } = startMapper({}, () => answers.shift()!())
  t.equal(await map('a'), 'at shop.js:3:5')
  t.equal(await map('a'), 'at src/app.ts:1:1')
  t.equal(await map('a'), 'at src/app.ts:1:1')
  t.strictSame(reads, ['a', 'a'])
})

t.test('a map that is too large or none at all is left aside', async (t) => {
  const large = startMapper({ maxMapBytes: MIB - 1 })
  t.equal(await large.map('a'), 'at shop.js:3:5')
  t.equal(await large.map('a'), 'at shop.js:3:5')
  t.strictSame(large.reads, ['a'])
  const none = startMapper({}, async () => '{')
  t.equal(await none.map('a'), 'at shop.js:3:5')
})

t.test('a map larger than all that may be kept is used and not kept', async (t) => {
  const { reads, map } = startMapper({ maxCachedBytes: 10_000 })
  for (const id of ['a', 'a']) t.equal(await map(id), 'at src/app.ts:1:1')
  t.strictSame(reads, ['a', 'a'])
})
