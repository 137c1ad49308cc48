/**
 * Loaded into the server before its program, so that an earlier commit can be profiled as it is. At SIGUSR2 the server and its
 * hosts begin to profile their main threads, at the next they stop. A host cannot be told by a signal or over a port, for it
 * takes neither: it gets one more descriptor when it is started.
 */
import childProcess from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { SelfProfile } from './self-profile.mjs'

const HOST_PROGRAM = /\/host\/src\/process\.ts$/
const folder = new URL(import.meta.url).searchParams.get('folder')

if (isMainThread) prepare()

function prepare() {
  const hosts = new Set()
  const profile = new SelfProfile()
  let isRunning = false
  addToHosts(hosts)
  process.on('SIGUSR2', () => void toggle())

  async function toggle() {
    isRunning = !isRunning
    if (isRunning) {
      await Promise.all([...hosts].map((host) => host.ask('start')))
      await profile.start()
      leave('started', {})
    } else {
      const server = await profile.stop()
      leave('profiles', { server, hosts: await Promise.all([...hosts].map((host) => host.ask('stop'))) })
    }
  }
}

/** Puts the other part into each host that is started. */
function addToHosts(hosts) {
  const { spawn } = childProcess
  childProcess.spawn = (command, args, options) => {
    const words = Array.isArray(args) ? [command, ...args] : []
    if (!words.some((word) => HOST_PROGRAM.test(word))) return spawn(command, args, options)
    const fd = options.stdio.length
    // Programs of a sandbox may stand in front.
    words.splice(words.indexOf(process.execPath) + 1, 0, ...flagsFor(fd, words))
    const child = spawn(words[0], words.slice(1), { ...options, stdio: options.stdio.concat('pipe') })
    if (child.pid === undefined) return child
    const host = { ask: questionsOn(child.stdio[fd]) }
    hosts.add(host)
    child.once('exit', () => hosts.delete(host))
    return child
  }
  syncBuiltinESMExports()
}

function flagsFor(fd, words) {
  const load = `--import=${new URL(`profile-host.mjs?fd=${fd}`, import.meta.url).href}`
  if (!words.includes('--permission')) return [load]
  return [load, '--allow-inspector', `--allow-fs-read=${join(dirname(fileURLToPath(import.meta.url)), '*')}`]
}

/** Asks one question at a time. */
function questionsOn(channel) {
  const lines = createInterface({ input: channel })
  channel.on('error', () => {})
  channel.unref()
  return (word) => {
    const { promise, resolve } = Promise.withResolvers()
    lines.once('line', (line) => resolve(JSON.parse(line)))
    channel.write(`${word}\n`)
    return promise
  }
}

/** Nobody sees a file that is not complete. */
function leave(name, content) {
  const file = join(folder, `${name}.json`)
  writeFileSync(`${file}.part`, JSON.stringify(content))
  renameSync(`${file}.part`, file)
}
