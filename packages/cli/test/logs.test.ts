import t, { type Test } from 'tap'
import { run } from '../src/index.ts'
import { logLine, startControlPlane, TOKEN } from './support/control-plane.ts'
import { captureIo, runCommand } from './support/run-command.ts'

async function start(t: Test) {
  const plane = await startControlPlane(t)
  return { plane, env: { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN } }
}

t.test('logs prints a line of text for each line', async (t) => {
  const { plane, env } = await start(t)
  plane.log = [logLine('one'), logLine('two', { level: 'error' })]
  const { exitCode, stdout } = await runCommand(['logs'], { env })
  t.equal(exitCode, 0)
  t.equal(stdout, '2026-01-01T00:00:00.000Z info  hello: one\n2026-01-01T00:00:00.000Z error hello: two\n')
  t.strictSame(plane.logQueries, [''])
})

t.test('what a function writes can neither steer the terminal nor look like another line', async (t) => {
  const { plane, env } = await start(t)
  const stack = 'exception: Error: x\n    at src/app.ts:1:1'
  plane.log = [
    logLine('\u001b[2J\u001b]0;title\u0007\u009b31m\u0000\u007f red'),
    logLine('one\n2026-01-01T00:00:00.000Z error other: forged\r\rover'),
    logLine('\u2028\u2029\u0085 \u202eesrever\u2066 \ud800 \ufeff tab\tü🚗'),
    logLine(stack),
  ]
  const { stdout } = await runCommand(['logs'], { env })
  const head = '2026-01-01T00:00:00.000Z info  hello: '
  t.strictSame(stdout.split('\n'), [
    `${head}\\u001b[2J\\u001b]0;title\\u0007\\u009b31m\\u0000\\u007f red`,
    `${head}one`,
    '    2026-01-01T00:00:00.000Z error other: forged\\u000d\\u000dover',
    `${head}\\u2028\\u2029\\u0085 \\u202eesrever\\u2066 \\ud800 \\ufeff tab\tü🚗`,
    `${head}exception: Error: x`,
    '        at src/app.ts:1:1',
    '',
  ])
})

t.test('the name, -n and -f are passed on', async (t) => {
  const { plane, env } = await start(t)
  await runCommand(['logs', 'hello', '-n', '5'], { env })
  t.strictSame(plane.logQueries, ['?function=hello&limit=5'])
})

t.test('logs --json prints one array', async (t) => {
  const { plane, env } = await start(t)
  t.match(await runCommand(['logs', '--json'], { env }), { exitCode: 0, stdout: '[]\n' })
  plane.log = [logLine('one'), logLine('two\nlines ü')]
  t.strictSame(JSON.parse((await runCommand(['logs', '--json'], { env })).stdout), plane.log)
})

t.test('logs -f --json prints one document per line, as they come, until the server leaves', async (t) => {
  const { plane, env } = await start(t)
  plane.log = [logLine('one'), logLine('two')]
  const { io, written, untilWritten } = captureIo(env)
  const ended = run(['logs', 'hello', '-f', '--json'], io)
  await untilWritten('stdout', /\n.*\n/)
  t.strictSame(
    written()
      .stdout.trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    plane.log,
  )
  t.strictSame(plane.logQueries, ['?function=hello&follow=true'])
  plane.breakConnections()
  t.equal(await ended, 1)
  t.match(written().stderr, /^carpool: The server at .* hung up/)
})
