import { SourceMap } from 'node:module'
import t from 'tap'
import { mapStack, parseSourceMap } from '../src/source-mapper.ts'

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
