import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Compile } from 'typebox/schema'
import { nearestName } from '@carpool/core'
import { configSchema, readConfigFile, resolveSettings, SETTINGS } from '../src/settings/index.ts'
import { JsonFault, parseJson } from '../src/settings/json-text.ts'

function folderWith(t: Test, text: string | Buffer, name = 'carpool.server.json'): string {
  const folder = t.testdir({})
  writeFileSync(join(folder, name), text)
  return folder
}

t.test('the file of the working folder is read if it is there', async (t) => {
  t.equal(readConfigFile({ env: {}, folder: t.testdir({}) }), undefined)
  const folder = folderWith(t, '{ "port": 1, "keepWarm": ["a"] }')
  t.strictSame(readConfigFile({ env: {}, folder }), {
    path: 'carpool.server.json',
    values: { port: 1, keepWarm: ['a'] },
  })
})

t.test('a flag names another file, and wins over the environment', async (t) => {
  const folder = t.testdir({ 'a.json': '{"port": 1}', 'b.json': '{"port": 2}', 'carpool.server.json': '{"port": 3}' })
  const portOf = (flag: string | undefined, env: Record<string, string>) => readConfigFile({ flag, env, folder })?.values['port']
  t.equal(portOf('a.json', { CARPOOL_CONFIG: 'b.json' }), 1)
  t.equal(portOf(undefined, { CARPOOL_CONFIG: 'b.json' }), 2)
  t.equal(portOf(undefined, { CARPOOL_CONFIG: '' }), 3)
  t.equal(portOf(join(folder, 'a.json'), {}), 1, 'an absolute path')
})

t.test('a file that was named must be there, and be a file', async (t) => {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'carpool.server.json'))
  t.throws(() => readConfigFile({ flag: 'none.json', env: {}, folder }), {
    code: 'invalid-setting',
    message: 'The file none.json (--config) cannot be read: there is no such file.',
  })
  t.throws(() => readConfigFile({ env: { CARPOOL_CONFIG: 'none.json' }, folder }), { message: /none\.json \(CARPOOL_CONFIG\)/ })
  t.throws(() => readConfigFile({ env: {}, folder }), { message: 'The file carpool.server.json cannot be read: it is no file.' })
})

t.test('text that is no JSON is refused with the line and the column', async (t) => {
  const cases: Array<[text: string, where: string]> = [
    ['', 'line 1, column 1: expected a value, not the end of the file'],
    ['{\n  "port": 1,\n}', 'line 3, column 1: expected a key in double quotes, not "}"'],
    ['{\n  "port": 1 // why\n}', 'line 2, column 13: JSON has no comments'],
    ['// why\n{}', 'line 1, column 1: JSON has no comments'],
    ['{"port": 1', 'line 1, column 11: expected "," or "}", not the end of the file'],
    ['{"port" 1}', 'line 1, column 9: expected ":", not "1"'],
    ['{"port": 0x10}', 'line 1, column 11: expected "," or "}", not "x"'],
    ['{"port": 01}', 'line 1, column 11: expected "," or "}", not "1"'],
    ['{"port": NaN}', 'line 1, column 10: expected a value, not "N"'],
    ["{'port': 1}", 'line 1, column 2: expected a key in double quotes, not "\'"'],
    ['{"keepWarm": ["a" "b"]}', 'line 1, column 19: expected "," or "]", not "\\""'],
    ['{"port": 1}\n{', 'line 2, column 1: expected the end of the file, not "{"'],
    ['{"port": 1,\n "port": 2}', 'line 2, column 2: the key "port" stands there twice'],
    ['['.repeat(100_000), 'line 1, column 18: values stand in each other more than 16 deep'],
    ['{"data": "a\nb"}', 'line 1, column 10: the text has a character that must be escaped, or an escape that is none'],
    ['{"data": "C:\\data"}', 'line 1, column 10: the text has a character that must be escaped, or an escape that is none'],
    ['{"data": "a}', 'line 1, column 10: the text that begins here has no end'],
    ['[1]', 'line 1, column 1: the settings must stand in one object'],
    ['null', 'line 1, column 1: the settings must stand in one object'],
  ]
  for (const [text, where] of cases) {
    const folder = folderWith(t, text)
    t.throws(
      () => readConfigFile({ env: {}, folder }),
      { code: 'invalid-setting', message: `carpool.server.json, ${where}.` },
      text.slice(0, 30),
    )
  }
})

t.test('bytes that are no text are refused', async (t) => {
  const folder = folderWith(t, Buffer.from([0xff, 0xfe, 0x7b, 0]))
  t.throws(() => readConfigFile({ env: {}, folder }), { code: 'invalid-setting', message: /line 1, column 1: expected a value/ })
})

t.test('a mark in front, as some editors write it, is no fault', async (t) => {
  t.strictSame(readConfigFile({ env: {}, folder: folderWith(t, '\uFEFF{"port": 1}') })?.values, { port: 1 })
})

t.test('what JSON is, is what the engine says', async (t) => {
  const texts = fc.oneof(
    fc.json({ maxDepth: 3 }),
    fc
      .json({ maxDepth: 3 })
      .chain((text) =>
        fc
          .tuple(fc.nat({ max: text.length }), fc.constantFrom('', ',', '"', '}', ']', '0', '\\', '\n', 'e', '.'))
          .map(([index, inserted]) => text.slice(0, index) + inserted + text.slice(index + 1)),
      ),
  )
  const outcomeOf = (parse: (text: string) => unknown, text: string): unknown => {
    try {
      return { value: parse(text) }
    } catch (cause) {
      if (cause instanceof JsonFault && cause.message.includes('twice')) return 'twice'
      return 'fault'
    }
  }
  fc.assert(
    fc.property(texts, (text) => {
      const ours = outcomeOf(parseJson, text)
      if (ours !== 'twice') t.strictSame(ours, outcomeOf(JSON.parse, text))
    }),
    { numRuns: 2_000 },
  )
})

t.test('an unknown key is refused with the nearest that there is', async (t) => {
  const cases: Array<[key: string, hint: string]> = [
    ['maxHost', ' Did you mean maxHosts?'],
    ['max-hosts', ' Did you mean maxHosts?'],
    ['CARPOOL_PORT', ''],
    ['maxQueue', ' Did you mean maxQueued?'],
    ['colour', ''],
    ['__proto__', ''],
    ['constructor', ''],
  ]
  for (const [key, hint] of cases) {
    const folder = folderWith(t, `{ "port": 1, "${key}": 1 }`)
    const message = `carpool.server.json has the key "${key}", which is no setting.${hint}`
    t.throws(() => readConfigFile({ env: {}, folder }), { code: 'invalid-setting', message })
  }
})

t.test('every name is the nearest to itself with a letter too few', async (t) => {
  const names = Object.keys(SETTINGS)
  fc.assert(
    fc.property(fc.constantFrom(...names.filter((name) => name.length > 6)), fc.nat(), (name, at) => {
      const index = at % name.length
      const near = nearestName(name.slice(0, index) + name.slice(index + 1), names)
      t.ok(near !== undefined)
    }),
  )
})

t.test('the schema takes what the server takes, and refuses what it refuses', async (t) => {
  const schema = Compile(configSchema())
  const isValid = (values: Record<string, unknown>): boolean => schema.Check(values)
  const isTaken = (values: Record<string, unknown>): boolean => {
    try {
      resolveSettings({}, {}, { file: { path: 'x', values }, cores: 1_000_000 })
      return true
    } catch {
      return false
    }
  }
  const defaults = Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, setting.default]))
  t.ok(isValid({ $schema: './schema.json', ...defaults }))
  t.notOk(isValid({ prot: 1 }))
  for (const [name, setting] of Object.entries(SETTINGS)) {
    // What two settings must have to each other, and what a name or an address range may be, is not in a schema.
    const values =
      setting.type === 'number'
        ? [-1, 0, 1.5, '1', null, setting.min, setting.max === 'cores' ? 1 : setting.max + 1]
        : [1, null, {}, '', ['']]
    for (const value of values) {
      if (Array.isArray(value) && setting.type === 'list' && setting.choices === undefined) continue
      const given = { [name]: value }
      if (isValid(given) === isTaken(given)) continue
      const relation = /^(minHosts|hostLimit|saturationPercent|panicPercent|quarantineAfter|disableAfter)/
      t.ok(isValid(given) && relation.test(name), `${name} ${JSON.stringify(value)}`)
    }
  }
})
