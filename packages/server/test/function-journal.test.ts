import { NO_USAGE, type LogLine, type Revision } from '@carpool/core'
import { FunctionLogs } from '@carpool/telemetry'
import t, { type Test } from 'tap'
import { FunctionJournal, type FunctionJournalOptions } from '../src/function-journal.ts'
import { SourceMapper } from '../src/source-mapper.ts'

const REVISION = { id: '0123456789abcdef', functionName: 'shop' } as Revision
const MAP = '{"version":3,"sources":["src/app.ts"],"names":[],"mappings":";;IAAA"}'

function startJournal(t: Test, read: () => Promise<string>, options: FunctionJournalOptions = {}) {
  const logs = new FunctionLogs(t.testdir())
  t.teardown(() => logs.close())
  const journal = new FunctionJournal(logs, new SourceMapper(read), options)
  const lines = (): Promise<LogLine[]> => logs.tail({ functionName: 'shop', limit: 10 })
  return { journal, lines }
}

t.test('a failure is logged in positions of the author, with the time at which it was told', async (t) => {
  const map = Promise.withResolvers<string>()
  const { journal, lines } = startJournal(t, () => map.promise)
  journal.failed(REVISION, 'one', {
    outcome: 'exception',
    start: 'warm',
    usage: NO_USAGE,
    detail: 'd',
    stack: 'Error: x\n    at shop.js:3:5',
  })
  const told = new Date().toISOString()
  t.strictSame(await lines(), [])
  while (new Date().toISOString() === told) await new Promise(setImmediate)
  map.resolve(MAP)
  await journal.settled()
  const [line] = await lines()
  t.match(line, { stream: 'carpool', level: 'error', invocationId: 'one', msg: 'exception: Error: x\n    at src/app.ts:1:1' })
  t.ok(line !== undefined && line.time <= told)
})

t.test('settled waits for every failure, and is at once there if there is none', async (t) => {
  const { journal, lines } = startJournal(t, async () => MAP)
  await journal.settled()
  for (const id of ['a', 'b', 'c'])
    journal.failed(REVISION, id, { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 'late' })
  await journal.settled()
  t.strictSame(
    (await lines()).map(({ invocationId, msg }) => [invocationId, msg]),
    ['a', 'b', 'c'].map((id) => [id, 'timeout: late']),
  )
})

t.test('neither a stack that is no text nor a map that cannot be read keeps a failure out of the log', async (t) => {
  const { journal, lines } = startJournal(t, () => {
    throw new Error('no')
  })
  const failed = { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'detail' } as const
  for (const stack of [{ a: 1 }, null, 7] as unknown as string[]) journal.failed(REVISION, 'x', { ...failed, stack })
  journal.failed(REVISION, 'x', { ...failed, detail: 7 as unknown as string })
  await journal.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    ['exception: detail', 'exception: detail', 'exception: detail', 'exception: 7'],
  )
})

t.test('a failure of a name that no log takes is lost without a fault', async (t) => {
  const { journal } = startJournal(t, async () => MAP)
  journal.failed({ ...REVISION, functionName: '../x' }, 'x', {
    outcome: 'timeout',
    start: 'warm',
    usage: NO_USAGE,
    detail: 'late',
  })
  await t.resolves(journal.settled())
})

t.test('what the client has left is not logged', async (t) => {
  const { journal, lines } = startJournal(t, async () => MAP)
  journal.failed(REVISION, 'x', { outcome: 'canceled', start: 'warm', usage: NO_USAGE, detail: 'left' })
  await journal.settled()
  t.strictSame(await lines(), [])
})

t.test('what a function writes and what it fails with is redacted, once it is mapped', async (t) => {
  const asked = new Set<string>()
  const { journal, lines } = startJournal(t, async () => MAP, {
    redact: ({ functionName }, text) => {
      asked.add(functionName)
      return text.replaceAll('s3cret', '[secret KEY]')
    },
  })
  journal.wrote(REVISION, 'info', 'it is s3cret', 'one')
  const stack = 'Error: s3cret\n    at shop.js:3:5'
  journal.failed(REVISION, 'one', { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 's3cret', stack })
  journal.failed(REVISION, 'two', { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 's3cret' })
  await journal.settled()
  t.strictSame(
    (await lines()).map(({ msg }) => msg),
    ['it is [secret KEY]', 'exception: Error: [secret KEY]\n    at src/app.ts:1:1', 'timeout: [secret KEY]'],
  )
  t.strictSame([...asked], ['shop'])
})

t.test('what comes of a function that was deleted is not put in the log that its name has then', async (t) => {
  const map = Promise.withResolvers<string>()
  let isThere = true
  const { journal, lines } = startJournal(t, () => map.promise, { hasLog: () => isThere })
  journal.failed(REVISION, 'one', { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'd', stack: 'Error' })
  isThere = false
  journal.wrote(REVISION, 'info', 'late', 'one')
  map.resolve(MAP)
  await journal.settled()
  t.strictSame(await lines(), [])
})
