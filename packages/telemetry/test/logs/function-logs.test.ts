import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { LogLine } from '@carpool/core'
import t from 'tap'
import { FunctionLogs } from '../../src/logs/function-logs.ts'
import type { LogProblem } from '../../src/logs/log-file.ts'
import { line, messages } from './fixtures/line.ts'

t.test('lines come back in order, also after a restart', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  const lines = Array.from({ length: 20 }, (_, second) => line('hello', second))
  for (const each of lines) logs.append(each)
  t.same(await logs.tail({ functionName: 'hello', limit: 100 }), lines)
  t.same(await logs.tail({ functionName: 'hello', limit: 3 }), lines.slice(-3))
  t.same(await logs.tail({ functionName: 'hello', limit: 0 }), [])
  await logs.close()

  const reopened = new FunctionLogs(folder)
  reopened.append(line('hello', 20))
  t.same(messages(await reopened.tail({ functionName: 'hello', limit: 2 })), ['line 19', 'line 20'])
  t.same(await reopened.tail({ functionName: 'nobody', limit: 2 }), [])
  await reopened.close()
})

t.test('the lines of all functions come in the order of their times', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  for (const second of [0, 3, 6]) logs.append(line('a', second))
  for (const second of [1, 4, 7]) logs.append(line('b', second))
  for (const second of [2, 5, 8]) logs.append(line('c', second))
  const all = Array.from({ length: 9 }, (_, second) => `line ${second}`)
  t.same(messages(await logs.tail({ limit: 100 })), all)
  t.same(messages(await logs.tail({ limit: 4 })), all.slice(-4))
  await logs.close()
  t.same(messages(await new FunctionLogs(folder).tail({ limit: 100 })), all)
})

t.test('tail and follow in one turn miss no line and give none twice', async (t) => {
  const logs = new FunctionLogs(t.testdir())
  for (const name of ['a', 'b']) logs.append(line(name, 1, 'before'))
  const followed: LogLine[] = []
  const tails = [logs.tail({ limit: 10 }), logs.tail({ functionName: 'b', limit: 10 })]
  const stop = logs.follow({}, (each) => followed.push(each))
  for (const name of ['a', 'b']) logs.append(line(name, 2, 'after'))
  t.same((await Promise.all(tails)).map(messages), [['before', 'before'], ['before']])
  t.same(messages(followed), ['after', 'after'])
  stop()
  logs.append(line('a', 3))
  t.equal(followed.length, 2)
  await logs.close()
})

t.test('who may see some functions is given the lines of these alone', async (t) => {
  const logs = new FunctionLogs(t.testdir())
  const followed: LogLine[] = []
  const includes = (name: string): boolean => name !== 'b'
  logs.follow({ includes }, (each) => followed.push(each))
  logs.follow({ includes, functionName: 'b' }, (each) => followed.push(each))
  for (const [second, name] of ['a', 'b', 'c'].entries()) logs.append(line(name, second))
  t.same(messages(followed), ['line 0', 'line 2'])
  t.same(messages(await logs.tail({ includes, limit: 10 })), ['line 0', 'line 2'])
  t.same(await logs.tail({ includes, functionName: 'b', limit: 10 }), [])
  t.same(messages(await logs.tail({ includes, functionName: 'a', limit: 10 })), ['line 0'])
  await logs.close()
})

const HOSTILE = [
  'a\n{"level":"info","msg":"forged"}',
  '\r\n\u000b\u000c\u001c\u001d\u001e\u0085\u2028\u2029',
  '\u001b[2J\u001b]0;title\u0007\u009b31m\u007f\u0000',
  '\ud800 \udc00 \ud83d',
  '\ufeff\u202e"\\',
]

t.test('a message is one line of the file to every reader, and comes back as it was', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  for (const [second, msg] of HOSTILE.entries()) logs.append(line('hello', second, msg))
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 10 })), HOSTILE)
  const text = readFileSync(join(folder, 'logs', 'hello.ndjson'), 'utf8')
  const lines = text.split(/[\p{Cc}\p{Zl}\p{Zp}]/u)
  t.equal(lines.length, HOSTILE.length + 1)
  t.equal(text.match(/\p{Cc}/gu)?.join(''), '\n'.repeat(HOSTILE.length))
  for (const [index, msg] of HOSTILE.entries()) t.equal((JSON.parse(lines[index] ?? '') as LogLine).msg, msg)
  await logs.close()
})

t.test('a follower of one function hears of no other', async (t) => {
  const logs = new FunctionLogs(t.testdir())
  const followed: LogLine[] = []
  logs.follow({ functionName: 'a' }, (each) => followed.push(each))
  logs.append(line('a', 1))
  logs.append(line('b', 2))
  t.same(followed, [line('a', 1)])
  await logs.close()
})

t.test('whatever a function writes is one line of JSON', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  const odd = ['two\nlines\r\n', '{"level":"error"}', '\u001b[31mred', '\u2028\u2029', '\0', '\ud800', '"\\', '__proto__']
  for (const msg of odd) logs.append(line('hello', 1, msg))
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 100 })), odd)
  t.equal(readFileSync(join(folder, 'logs', 'hello.ndjson'), 'utf8').split('\n').length, odd.length + 1)
  await logs.close()
})

t.test('a long message is cut, with the count of what is missing', async (t) => {
  const logs = new FunctionLogs(t.testdir(), { maxMessageLength: 5 })
  logs.append(line('hello', 1, '12345'))
  logs.append(line('hello', 2, '12345678'))
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['12345', '12345… (3 more characters cut)'])
  await logs.close()
})

t.test('a log takes two files of limited size, and keeps the newest lines', async (t) => {
  const folder = t.testdir()
  const maxFileBytes = 4096
  const logs = new FunctionLogs(folder, { maxFileBytes })
  for (let second = 0; second < 300; second += 1) {
    logs.append(line('hello', second))
    if (second % 7 === 0) await logs.tail({ functionName: 'hello', limit: 1 })
  }
  const kept = messages(await logs.tail({ functionName: 'hello', limit: 1000 }))
  t.same(readdirSync(join(folder, 'logs')).toSorted(), ['hello.1.ndjson', 'hello.ndjson'])
  for (const file of readdirSync(join(folder, 'logs'))) t.ok(statSync(join(folder, 'logs', file)).size <= maxFileBytes)
  t.ok(kept.length > 20)
  t.same(
    kept,
    Array.from({ length: kept.length }, (_, index) => `line ${300 - kept.length + index}`),
  )
  await logs.close()

  const reopened = new FunctionLogs(folder, { maxFileBytes })
  for (let second = 300; second < 400; second += 1) {
    reopened.append(line('hello', second))
    await reopened.tail({ functionName: 'hello', limit: 1 })
  }
  for (const file of readdirSync(join(folder, 'logs'))) t.ok(statSync(join(folder, 'logs', file)).size <= maxFileBytes)
  await reopened.close()
})

t.test('a server that was killed between two files still finds the older one', async (t) => {
  const folder = t.testdir({ logs: { 'hello.1.ndjson': `${JSON.stringify(line('hello', 1))}\n` } })
  const logs = new FunctionLogs(folder)
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['line 1'])
  t.same(messages(await logs.tail({ limit: 9 })), ['line 1'])
  await logs.close()
})

t.test('lines longer than a block of the reader are read whole', async (t) => {
  const logs = new FunctionLogs(t.testdir(), { maxMessageLength: 200_000 })
  const long = Array.from({ length: 3 }, (_, index) => String(index).repeat(150_000))
  for (const msg of long) logs.append(line('hello', 1, `é${msg}`))
  const read = messages(await logs.tail({ functionName: 'hello', limit: 2 }))
  t.ok(read[0] === `é${long[1]}` && read[1] === `é${long[2]}` && read.length === 2)
  await logs.close()
})

t.test('removing a log deletes its files, and a new one begins empty', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  logs.append(line('hello', 1))
  const removed = logs.remove('hello')
  logs.append(line('hello', 2))
  await removed
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['line 2'])
  await logs.remove('hello')
  await logs.remove('nobody')
  t.same(readdirSync(join(folder, 'logs')), [])
  await logs.close()
})

t.test('logs of functions that are not there any more are deleted at the start', async (t) => {
  const folder = t.testdir()
  const before = new FunctionLogs(folder)
  for (const name of ['kept', 'deleted']) before.append(line(name, 1))
  await before.close()
  const logs = new FunctionLogs(folder, { isFunction: (name) => name === 'kept' })
  logs.append(line('deleted', 2, 'of the next one'))
  t.same(messages(await logs.tail({ limit: 10 })), ['line 1', 'of the next one'])
  await logs.close()
})

t.test('a log that was removed is looked into no more, unless the name is in use again', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder)
  for (const name of ['gone', 'again']) logs.append(line(name, 1))
  const removed = ['gone', 'again'].map((name) => logs.remove(name))
  logs.append(line('again', 2, 'of the next one'))
  await Promise.all(removed)
  writeFileSync(join(folder, 'logs', 'gone.ndjson'), JSON.stringify(line('gone', 3)))
  t.same(messages(await logs.tail({ limit: 10 })), ['of the next one'])
})

t.test('a line that was cut short spoils no other', async (t) => {
  const whole = `${JSON.stringify(line('hello', 1))}\n`
  const folder = t.testdir({ logs: { 'hello.ndjson': `${whole}{"time":"20` } })
  const logs = new FunctionLogs(folder)
  logs.append(line('hello', 2))
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['line 1', 'line 2'])
  await logs.close()
})

t.test('a server that is killed while functions log loses no line that was written', async (t) => {
  const folder = t.testdir()
  const script = fileURLToPath(new URL('./fixtures/log-forever.ts', import.meta.url))
  let count = 0
  for (const rounds of [1, 3, 6]) {
    const child = spawn(process.execPath, [script, folder, String(count)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    const target = count + rounds * 10
    for await (const printed of createInterface(child.stdout)) {
      count = Number(printed)
      if (count === target) child.kill('SIGKILL')
    }
    await closed
    const seen = new Set(messages(await new FunctionLogs(folder).tail({ functionName: 'hello', limit: 100_000 })))
    for (let index = 0; index < count; index += 1) if (!seen.has(`line ${index}`)) t.fail(`line ${index} is lost`)
    t.ok(seen.size >= count)
  }
})

t.test('while the disk refuses, lines are counted as dropped and reported once per minute', async (t) => {
  // A file where the folder should be.
  const folder = t.testdir({ logs: 'in the way' })
  const problems: LogProblem[] = []
  let nowMs = 0
  const logs = new FunctionLogs(folder, { clock: () => nowMs, onProblem: (problem) => problems.push(problem) })
  const appendAndWrite = async (second: number): Promise<void> => {
    logs.append(line('hello', second))
    await logs.tail({ functionName: 'hello', limit: 1 }).catch(() => [])
  }
  await appendAndWrite(1)
  await appendAndWrite(2)
  nowMs = 59_999
  await appendAndWrite(3)
  t.match(problems, [{ droppedLines: 1, detail: 'The log of a function cannot be written.', cause: Error }])
  nowMs = 60_000
  await appendAndWrite(4)
  t.same(
    problems.map(({ droppedLines }) => droppedLines),
    [1, 3],
  )

  rmSync(join(folder, 'logs'))
  mkdirSync(join(folder, 'logs'))
  await appendAndWrite(5)
  t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['line 5'])
  t.equal(logs.droppedLines, 4)
  await logs.close()
})

t.test(
  'lines that find the disk full are dropped, and those after it are kept',
  { skip: !existsSync('/dev/full') },
  async (t) => {
    const folder = t.testdir({ logs: {} })
    const path = join(folder, 'logs', 'hello.ndjson')
    symlinkSync('/dev/full', path)
    const problems: LogProblem[] = []
    const logs = new FunctionLogs(folder, { onProblem: (problem) => problems.push(problem) })
    logs.append(line('hello', 1))
    logs.append(line('other', 1))
    await logs.tail({ limit: 1, functionName: 'other' })
    t.same(messages(await logs.tail({ functionName: 'other', limit: 9 })), ['line 1'])
    await logs.close()
    t.match(problems, [{ droppedLines: 1, cause: { code: 'ENOSPC' } }])
    unlinkSync(path)
    logs.append(line('hello', 2))
    t.same(messages(await logs.tail({ functionName: 'hello', limit: 9 })), ['line 2'])
    await logs.close()
  },
)

t.test('a function that logs faster than the disk takes it loses lines, and costs the others none', async (t) => {
  const folder = t.testdir()
  const logs = new FunctionLogs(folder, { maxBufferBytes: 10_000 })
  for (let second = 0; second < 1000; second += 1) logs.append(line('flood', second))
  logs.append(line('quiet', 1))
  const kept = await logs.tail({ functionName: 'flood', limit: 10_000 })
  t.ok(kept.length > 10 && kept.length + logs.droppedLines === 1000)
  t.ok(readFileSync(join(folder, 'logs', 'flood.ndjson')).length <= 10_000)
  t.equal((await logs.tail({ functionName: 'quiet', limit: 10 })).length, 1)
  logs.append(line('flood', 1001))
  t.match(await logs.tail({ functionName: 'flood', limit: 1 }), [{ msg: 'line 1001' }], 'what was written makes room')
  await logs.close()
})

t.test('the buffers of all functions together are limited', async (t) => {
  const logs = new FunctionLogs(t.testdir(), { maxTotalBufferBytes: 10_000 })
  for (let index = 0; index < 1000; index += 1) logs.append(line(`f${index % 100}`, index))
  const kept = await logs.tail({ limit: 10_000 })
  t.ok(kept.length > 10 && kept.length < 100)
  t.equal(kept.length + logs.droppedLines, 1000)
  await logs.close()
})

t.test('other files in the folder are left alone', async (t) => {
  const folder = t.testdir({ logs: { 'README.txt': 'x', 'Bad Name.ndjson': 'x', 'hello.1.ndjson': 'not json\n' } })
  const logs = new FunctionLogs(folder)
  t.same(await logs.tail({ limit: 9 }), [])
  writeFileSync(join(folder, 'logs', 'hello.ndjson'), '')
  t.throws(() => logs.append(line('../escape', 1)), { code: 'invalid-name' })
  await logs.close()
})
