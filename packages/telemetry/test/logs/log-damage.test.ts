import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { FunctionLogs } from '../../src/logs/function-logs.ts'
import type { LogProblem } from '../../src/logs/drop-report.ts'
import { line, messages } from './fixtures/line.ts'

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
