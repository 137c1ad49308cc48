import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, openSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../../../test/support/form.ts'

const LAUNCHER = fileURLToPath(new URL('../bin/carpool.js', import.meta.url))

const oldNode = findOldNode()
const skip = oldNode === undefined && 'there is no Node.js older than 26 on the path'
const node = oldNode ?? process.execPath
const noTerminal =
  (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0) &&
  'there is no script of util-linux, which makes a terminal'

function findOldNode(): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
    .find((file) => Number.parseInt(execFileSync(file, ['--version'], { encoding: 'utf8' }).slice(1), 10) < 26)
}

/** The launcher with another program behind it, which prints its Node.js, its arguments and its signals. */
function launcherOf(t: Test, main: string): string {
  const root = t.testdir({ bin: {}, src: { 'main.ts': main }, 'package.json': '{"type":"module"}' })
  cpSync(LAUNCHER, join(root, 'bin', 'carpool.js'))
  return join(root, 'bin', 'carpool.js')
}

const UNTIL_STOPPED_MODULE = new URL('../src/until-stopped.ts', import.meta.url).href
const SERVING = `
  import { untilStopped } from '${UNTIL_STOPPED_MODULE}'
  export async function run() {
    const stopped = untilStopped()
    const alive = setInterval(() => {}, 1000)
    console.log(process.pid)
    await stopped
    console.log('stopping')
    if (process.argv[2] === 'stuck') await new Promise(() => {})
    clearInterval(alive)
    return 0
  }
`

async function startServing(t: Test, ...argv: string[]) {
  const child = spawn(node, [launcherOf(t, SERVING), ...argv], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines = child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })
  const nextLine = async () => (await lines.next()).value as string | undefined
  return { child, exited, nextLine, innerPid: Number(await nextLine()) }
}

t.test('an older Node.js runs the command with the bundled one', { skip }, async (t) => {
  const { status, stdout, stderr } = spawnSync(node, [LAUNCHER, '--help'], { encoding: 'utf8' })
  t.equal(status, 0)
  t.match(stdout, 'Usage: carpool')
  t.equal(stderr, '')
})

const noFull = !existsSync('/dev/full') && 'there is no /dev/full'

t.test('an answer that the disk has no room for is a failure, and says so', { skip: noFull }, async (t) => {
  for (const print of ['console.log("answer")', 'await new Promise(setImmediate); console.log("answer")']) {
    const launcher = launcherOf(t, `export async function run() { ${print}; return 0 }`)
    const { status, stderr } = spawnSync(node, [launcher], {
      encoding: 'utf8',
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    })
    t.equal(status, 1)
    t.equal(stderr, 'carpool: stdout cannot be written (ENOSPC).\n')
  }
})

t.test('what serves goes on when the disk has no room for what it prints', { skip: noFull }, async (t) => {
  const child = spawn(node, [launcherOf(t, SERVING)], { stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines = child.stderr!.setEncoding('utf8').iterator({ destroyOnReturn: false })
  t.equal((await lines.next()).value, 'carpool: stdout cannot be written (ENOSPC).\n')
  child.kill('SIGTERM')
  t.strictSame(await exited, [0, null])
})

t.test('arguments, stdio and the exit code are passed on', { skip }, async (t) => {
  const launcher = launcherOf(
    t,
    `export async function run(argv, io) {
       io.stdout.write(JSON.stringify({ argv, major: parseInt(process.versions.node), launched: process.env.CARPOOL_LAUNCHED ?? null }))
       io.stderr.write(await new Response(io.stdin).text())
       return 7
     }`,
  )
  const { status, stdout, stderr } = spawnSync(node, [launcher, 'a b', '--c', ''], { encoding: 'utf8', input: 'in' })
  t.equal(status, 7)
  t.strictSame(JSON.parse(stdout), { argv: ['a b', '--c', ''], major: 26, launched: null })
  t.equal(stderr, 'in')
})

t.test('nothing of a long output is lost', { skip }, async (t) => {
  const launcher = launcherOf(t, `export async function run(_, io) { io.stdout.write('x'.repeat(5_000_000)); return 0 }`)
  const child = spawn(node, [launcher], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.equal((await text(child.stdout)).length, 5_000_000)
})

for (const signal of IS_WHOLE ? (['SIGINT', 'SIGTERM'] as const) : (['SIGINT'] as const)) {
  t.test(`${signal} to the launcher stops what it launched, which ends with 0`, { skip }, async (t) => {
    const { child, exited, nextLine } = await startServing(t)
    child.kill(signal)
    t.equal(await nextLine(), 'stopping\n')
    t.strictSame(await exited, [0, null])
  })

  t.test(`a second ${signal} ends it at once`, { skip }, async (t) => {
    const { child, exited, nextLine } = await startServing(t, 'stuck')
    child.kill(signal)
    t.equal(await nextLine(), 'stopping\n')
    child.kill(signal)
    t.strictSame(await exited, [signal === 'SIGINT' ? 130 : 143, null])
  })

  t.test(`${signal} that a terminal sends to both counts once`, { skip }, async (t) => {
    const { child, exited, nextLine, innerPid } = await startServing(t)
    process.kill(innerPid, signal)
    child.kill(signal)
    t.equal(await nextLine(), 'stopping\n')
    t.strictSame(await exited, [0, null])
  })

  t.test(`${signal} ends a command that does not handle it, and the launcher dies of the same signal`, { skip }, async (t) => {
    const launcher = launcherOf(
      t,
      `export const run = () => (console.log('up'), setInterval(() => {}, 1000), new Promise(() => {}))`,
    )
    const child = spawn(node, [launcher], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    child.kill(signal)
    t.strictSame(await exited, [null, signal])
  })
}

t.test('what was launched ends in order when the launcher is killed', { skip }, async (t) => {
  const { child, nextLine } = await startServing(t)
  child.kill('SIGKILL')
  t.equal(await nextLine(), 'stopping\n')
  t.equal(await nextLine(), undefined, 'both have let go of stdout')
})

t.test('a command that does not stop in order ends at once when the launcher is killed', { skip }, async (t) => {
  const launcher = launcherOf(
    t,
    `export const run = () => (console.log('up'), setInterval(() => {}, 1000), new Promise(() => {}))`,
  )
  const child = spawn(node, [launcher], { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await closed
  t.pass('both have let go of stdout')
})

t.test('output to a terminal that has closed does not end it before its time', { skip: skip || noTerminal }, async (t) => {
  const launcher = launcherOf(
    t,
    `import { writeFileSync } from 'node:fs'
     import { setImmediate } from 'node:timers/promises'
     import { untilStopped } from '${UNTIL_STOPPED_MODULE}'
     export async function run([file], { stdout, stderr }) {
       const stopped = untilStopped()
       const alive = setInterval(() => {}, 1000)
       stdout.write('up')
       await stopped
       for (let turn = 0; turn < 10; turn++) {
         stdout.write('out')
         stderr.write('err')
         await setImmediate()
       }
       clearInterval(alive)
       writeFileSync(file, 'ended in order')
       return 0
     }`,
  )
  const file = join(dirname(launcher), 'end')
  const terminal = spawn('script', ['-qfc', `exec '${node}' '${launcher}' '${file}'`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => terminal.kill('SIGKILL'))
  await once(terminal.stdout, 'data')
  terminal.kill('SIGKILL')
  // It is there before anything is in it.
  while (!existsSync(file) || readFileSync(file, 'utf8') === '') await setTimeout(10)
  t.equal(readFileSync(file, 'utf8'), 'ended in order')
})

t.test('without a bundled Node.js the error says what is needed', { skip }, async (t) => {
  const { status, stderr } = spawnSync(node, [LAUNCHER, 'list'], {
    encoding: 'utf8',
    env: { ...process.env, CARPOOL_LAUNCHED: '1' },
  })
  t.equal(status, 1)
  t.match(stderr, /^carpool: Node\.js 26 or newer is needed, this is v\d+/)
})

t.test('the launcher parses on Node.js 18: it uses no newer syntax', async (t) => {
  t.notMatch(readFileSync(LAUNCHER, 'utf8'), /\bawait using\b|import\.meta\.(dirname|resolve)|withResolvers|from '[^n]/)
})
