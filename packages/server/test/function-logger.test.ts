import { NO_USAGE, type LogLine, type Revision } from '@carpool/core'
import { FunctionLogs } from '@carpool/telemetry'
import t, { type Test } from 'tap'
import { FunctionLogger, type FunctionLoggerOptions } from '../src/host-reports/function-logger.ts'
import { indexSourceMap } from '../src/host-reports/source-map-index.ts'
import { mapStack, SourceMapper, type SourceMapperOptions } from '../src/host-reports/source-mapper.ts'

const REVISION = { id: '0123456789abcdef', functionName: 'shop' } as Revision
const MAP = '{"version":3,"sources":["src/app.ts"],"names":[],"mappings":";;IAAA"}'

function startLogger(t: Test, read: () => Promise<string>, options: FunctionLoggerOptions = {}) {
  const logs = new FunctionLogs(t.testdir())
  t.teardown(() => logs.close())
  const logger = new FunctionLogger(logs, new SourceMapper(read), options)
  const lines = (): Promise<LogLine[]> => logs.tail({ functionName: 'shop', limit: 10 })
  return { logger, lines }
}

t.test('a failure is logged in positions of the author, with the time at which it came', async (t) => {
  const map = Promise.withResolvers<string>()
  const { logger, lines } = startLogger(t, () => map.promise)
  logger.failed(REVISION, 'one', {
    outcome: 'exception',
    start: 'warm',
    usage: NO_USAGE,
    detail: 'd',
    stack: 'Error: x\n    at shop.js:3:5',
  })
  const came = new Date().toISOString()
  t.strictSame(await lines(), [])
  while (new Date().toISOString() === came) await new Promise(setImmediate)
  map.resolve(MAP)
  await logger.settled()
  const [line] = await lines()
  t.match(line, { stream: 'carpool', level: 'error', invocationId: 'one', msg: 'exception: Error: x\n    at src/app.ts:1:1' })
  t.ok(line !== undefined && line.time <= came)
})

t.test('a failure without positions is in the log without the map being read', async (t) => {
  const read: string[] = []
  const { logger, lines } = startLogger(t, async () => {
    read.push('map')
    return MAP
  })
  const failed = { start: 'warm', usage: NO_USAGE, detail: 'More CPU time than the limit of 100 ms.' } as const
  logger.failed(REVISION, 'one', { ...failed, outcome: 'cpu-exceeded' })
  logger.failed(REVISION, 'two', { ...failed, outcome: 'exception', stack: 'SyntaxError: x\nshop.js:3:5' })
  logger.failed(REVISION, 'three', { ...failed, outcome: 'timeout' })
  await logger.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    [
      'cpu-exceeded: More CPU time than the limit of 100 ms.',
      'exception: SyntaxError: x\nsrc/app.ts:1:1',
      'timeout: More CPU time than the limit of 100 ms.',
    ],
  )
  t.equal(read.length, 1)
  logger.failed({ ...REVISION, id: 'other' }, 'four', { ...failed, outcome: 'memory-exceeded' })
  await logger.settled()
  t.equal(read.length, 1)
})

t.test('settled waits for every failure, and is at once there if there is none', async (t) => {
  const { logger, lines } = startLogger(t, async () => MAP)
  await logger.settled()
  for (const id of ['a', 'b', 'c'])
    logger.failed(REVISION, id, { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 'late' })
  await logger.settled()
  t.strictSame(
    (await lines()).map(({ invocationId, msg }) => [invocationId, msg]),
    ['a', 'b', 'c'].map((id) => [id, 'timeout: late']),
  )
})

t.test('neither a stack that is no text nor a map that cannot be read keeps a failure out of the log', async (t) => {
  const { logger, lines } = startLogger(t, () => {
    throw new Error('no')
  })
  const failed = { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'detail' } as const
  for (const stack of [{ a: 1 }, null, 7] as unknown as string[]) logger.failed(REVISION, 'x', { ...failed, stack })
  logger.failed(REVISION, 'x', { ...failed, detail: 7 as unknown as string })
  await logger.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    ['exception: detail', 'exception: detail', 'exception: detail', 'exception: 7'],
  )
})

t.test('a failure of a name that no log takes is lost without a fault', async (t) => {
  const { logger } = startLogger(t, async () => MAP)
  logger.failed({ ...REVISION, functionName: '../x' }, 'x', {
    outcome: 'timeout',
    start: 'warm',
    usage: NO_USAGE,
    detail: 'late',
  })
  await t.resolves(logger.settled())
})

t.test('what the client has left is not logged', async (t) => {
  const { logger, lines } = startLogger(t, async () => MAP)
  logger.failed(REVISION, 'x', { outcome: 'canceled', start: 'warm', usage: NO_USAGE, detail: 'left' })
  await logger.settled()
  t.strictSame(await lines(), [])
})

t.test('what a function writes and what it fails with is redacted, once it is mapped', async (t) => {
  const asked = new Set<string>()
  const { logger, lines } = startLogger(t, async () => MAP, {
    redact: ({ functionName }, text) => {
      asked.add(functionName)
      return text.replaceAll('s3cret', '[secret KEY]')
    },
  })
  logger.wrote(REVISION, 'info', 'it is s3cret', 'one')
  const stack = 'Error: s3cret\n    at shop.js:3:5'
  logger.failed(REVISION, 'one', { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 's3cret', stack })
  logger.failed(REVISION, 'two', { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 's3cret' })
  await logger.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    ['it is [secret KEY]', 'exception: Error: [secret KEY]\n    at src/app.ts:1:1', 'timeout: [secret KEY]'],
  )
  t.strictSame([...asked], ['shop'])
})

t.test('what comes of a function that was deleted is not put in the log that its name has then', async (t) => {
  const map = Promise.withResolvers<string>()
  let isThere = true
  const { logger, lines } = startLogger(t, () => map.promise, { hasLog: () => isThere })
  logger.failed(REVISION, 'one', { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'd', stack: 'Error' })
  isThere = false
  logger.wrote(REVISION, 'info', 'late', 'one')
  map.resolve(MAP)
  await logger.settled()
  t.strictSame(await lines(), [])
})

t.test('stacks that a function writes are in positions of the author, and lines stay in order', async (t) => {
  const map = Promise.withResolvers<string>()
  const { logger, lines } = startLogger(t, () => map.promise)
  const { outcome, ...failed } = { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'd' } as const
  logger.wrote(REVISION, 'info', 'first', 'one')
  logger.wrote(
    REVISION,
    'error',
    'Uncaught rejection in waitUntil: Error: x\n    at go (shop.js:3:5)\n    at carpool:runtime:9:9',
    'one',
  )
  logger.wrote(REVISION, 'info', 'shop.js:3:5 and carpool:runtime stay', 'one')
  logger.failed(REVISION, 'one', { ...failed, outcome, stack: 'Error: y\n    at shop.js:3:5' })
  logger.wrote(REVISION, 'info', 'last', 'one')
  logger.wrote({ ...REVISION, id: 'fedcba9876543210' }, 'info', 'of another revision', 'two')
  map.resolve(MAP)
  await logger.settled()
  logger.wrote(REVISION, 'info', 'after it', 'one')
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    [
      'first',
      'of another revision',
      'Uncaught rejection in waitUntil: Error: x\n    at go (src/app.ts:1:1)',
      'shop.js:3:5 and carpool:runtime stay',
      'exception: Error: y\n    at src/app.ts:1:1',
      'last',
      'after it',
    ],
  )
})

t.test('a stack that a function writes loses the frames of the guest runtime even without a map', async (t) => {
  const { logger, lines } = startLogger(t, () => Promise.reject(new Error('no')))
  logger.wrote(REVISION, 'info', 'Trace: x\n    at carpool:runtime:1:2\n    at shop.js:3:5', 'one')
  await logger.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    ['Trace: x\n    at shop.js:3:5'],
  )
})

// Line 3, column 5 of the bundle is line 1, column 1 of src/app.ts.
const map = indexSourceMap(MAP)!

t.test('positions of the bundle become positions of the author', async (t) => {
  t.equal(mapStack('Error: x\n    at go (shop.js:3:5)', 'shop', map), 'Error: x\n    at go (src/app.ts:1:1)')
})

t.test('positions that the map does not know stay', async (t) => {
  t.equal(mapStack('at shop.js:1:1', 'shop', map), 'at shop.js:1:1')
})

t.test('frames of the guest runtime are left out', async (t) => {
  t.equal(mapStack('Error: x\n    at invoke (carpool:runtime:9:9)\n    at b', 'shop', map), 'Error: x\n    at b')
})

t.test('frames of modules that come with the bundler are left out, wherever a stack stands', async (t) => {
  const ours = 'node_modules/@carpool/bundler/builtins/http/server.ts'
  const text = JSON.stringify({ version: 3, sources: ['src/app.ts', ours], names: [], mappings: ';;IAAA;ICAA' })
  const stack = `Error: ${ours}\n    at go (shop.js:3:5)\n    at exchange (shop.js:4:5)\n    at async shop.js:4:5`
  const mapped = `Error: ${ours}\n    at go (src/app.ts:1:1)`
  t.equal(mapStack(stack, 'shop', indexSourceMap(text)!), mapped)
  const { logger, lines } = startLogger(t, async () => text)
  logger.wrote(REVISION, 'info', `${stack}\nand ${ours}`, 'one')
  await logger.settled()
  t.equal((await lines())[0]?.msg, `${mapped}\nand ${ours}`)
})

t.test('what a map and a line of its author bring is bounded: a long name of a file, and thousands of positions', async (t) => {
  const map = indexSourceMap(JSON.stringify({ ...JSON.parse(MAP), sources: [`${'x'.repeat(250_000)}/app.ts`] }))!
  const mapped = mapStack(`    at ${'shop.js:3:5 '.repeat(2_000)}`, 'shop', map)
  t.ok(mapped.length < 100_000, `${mapped.length} characters`)
  t.equal(mapped.match(/app\.ts:1:1/g)?.length, 100)
  t.equal(mapped.match(/shop\.js:3:5/g)?.length, 1_900)
})

const MIB = 1024 * 1024

/** A mapper of maps of one MiB, which tells what it reads. */
function startMapper(options: SourceMapperOptions, read = async (): Promise<string> => MAP.padEnd(MIB)) {
  const reads: string[] = []
  const mapper = new SourceMapper((revision) => {
    reads.push(revision.id)
    return read()
  }, options)
  const map = (id: string, owner = 'one'): Promise<string> =>
    mapper.map({ id, owner, functionName: 'shop' } as Revision, 'at shop.js:3:5')
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

t.test('the server goes on while a large map is read, however it is made', async (t) => {
  const hostile = JSON.stringify({ version: 3, sources: ['a.js'], names: [], mappings: 'A,'.repeat(MIB) })
  let turns = 0
  const count = (): NodeJS.Immediate =>
    setImmediate(() => {
      turns++
      immediate = count()
    })
  let immediate: NodeJS.Immediate
  const { map } = startMapper({}, async () => {
    immediate = count()
    return hostile
  })
  t.equal(await map('a'), 'at shop.js:3:5')
  clearImmediate(immediate!)
  t.ok(turns > 0)
})

t.test('of an owner with many maps that wait, more are not read, and those of others are', async (t) => {
  const isReading = Promise.withResolvers<string>()
  const { reads, map } = startMapper({}, () => isReading.promise)
  const many = Array.from({ length: 12 }, (_, index) => map(String(index)))
  t.equal(await many.at(-1), 'at shop.js:3:5')
  const other = map('other', 'another')
  isReading.resolve(MAP)
  t.equal(await other, 'at src/app.ts:1:1')
  t.strictSame(new Set(await Promise.all(many.slice(0, -1))), new Set(['at src/app.ts:1:1']))
  t.equal(await map('11'), 'at src/app.ts:1:1')
  t.strictSame(reads.slice(0, 3), ['0', 'other', '1'])
})

t.test('a map larger than all that may be kept is used and not kept', async (t) => {
  const { reads, map } = startMapper({ maxCachedBytes: 10_000 })
  for (const id of ['a', 'a']) t.equal(await map(id), 'at src/app.ts:1:1')
  t.strictSame(reads, ['a', 'a'])
})
