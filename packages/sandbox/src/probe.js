/** @import { NetConnectOpts } from 'node:net' */
/** @import { AttemptName, Canaries, ProbeAnswer, ProbeOrder } from './run-probe.ts' */
/**
 * A program with a hole: it is started exactly as a host is, and tries what code would try that got out of its isolate. Its text comes through a pipe,
 * as that of a host does, so it may import nothing of ours; and it is JavaScript, for to take types out costs 50 ms of CPU with each start.
 */
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { connect, Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'

/** A process without a handler for it ignores it. */
export const CANARY_SIGNAL = 'SIGURG'

/**
 * What code that is loose in a host would try. None of it harms anything. Each throws an error with a code if it cannot be done.
 * @type {Readonly<Record<AttemptName, (canaries: Canaries) => void | Promise<void>>>}
 */
export const ATTEMPTS = {
  'read a file': ({ file }) => void readFileSync(file),
  'list a folder': ({ folder }) => void readdirSync(folder),
  'write a file': ({ folder }) => writeFileSync(join(folder, `written-${process.pid}`), 'x'),
  'read the environment of the server': (canaries) => void readFileSync(`${serverFolder(canaries)}/environ`),
  'read the memory of the server': (canaries) => closeSync(openSync(`${serverFolder(canaries)}/mem`, 'r')),
  'see the processes of others': (canaries) => void serverFolder(canaries),
  'signal the server': ({ pid }) => void process.kill(pid, CANARY_SIGNAL),
  'connect to a TCP port': ({ tcpPort }) => connectTo({ host: '127.0.0.1', port: tcpPort }),
  'send a UDP packet': ({ udpPort }) => exchangePacket(udpPort),
  'connect to a UNIX socket': ({ socketPath }) => connectTo({ path: socketPath }),
  'connect to an abstract UNIX socket': ({ socketName }) => connectTo({ path: socketName }),
  'run a program': () => run(process.execPath, ['--version']),
  'run a shell': () => run('/bin/sh', ['-c', ':']),
  'start a thread': () => startThread(),
}

/** How long an attempt may take, in ms: a packet that is lost is not refused. */
const ATTEMPT_MS = 5_000
const SERVER_SOCKET_FD = 3

/** Answers each order that comes over the socket to the server; both are lines of JSON. The process ends with the socket. */
export async function answerOrders() {
  const socket = new Socket({ fd: SERVER_SOCKET_FD, readable: true, writable: true })
  socket.once('close', () => process.kill(process.pid, 'SIGKILL'))
  for await (const line of createInterface({ input: socket })) {
    const { canaries, attempts, wantsFacts } = /** @type {ProbeOrder} */ (JSON.parse(line))
    const facts = wantsFacts ? ownFacts() : undefined
    const results = Object.fromEntries(await Promise.all(attempts.map(async (name) => [name, await attempt(name, canaries)])))
    /** @type {ProbeAnswer} */
    const answer = { results, facts }
    socket.write(`${JSON.stringify(answer)}\n`)
  }
}

/**
 * @param {AttemptName} name
 * @param {Canaries} canaries
 */
async function attempt(name, canaries) {
  /** @type {NodeJS.Timeout | undefined} */
  let limit
  const late = new Promise((resolve) => (limit = setTimeout(() => resolve('ETIMEDOUT'), ATTEMPT_MS)))
  try {
    return await Promise.race([(async () => ATTEMPTS[name](canaries))().then(() => 'done'), late])
  } catch (cause) {
    return /** @type {NodeJS.ErrnoException} */ (cause).code ?? 'failed'
  } finally {
    clearTimeout(limit)
  }
}

/** @param {Canaries} canaries */
function serverFolder({ pid, startedTicks: expected }) {
  if (startedTicks(pid) !== expected) throw Object.assign(new Error('That is another process.'), { code: 'ENOENT' })
  return `/proc/${pid}`
}

/**
 * @param {NetConnectOpts} options
 * @returns {Promise<void>}
 */
async function connectTo(options) {
  return new Promise((resolve, reject) => {
    const socket = connect(options, () => resolve(void socket.destroy()))
    socket.once('error', reject)
  })
}

/**
 * Sends a packet, and waits for the echo.
 * @param {number} port
 */
async function exchangePacket(port) {
  const socket = createSocket('udp4')
  /** @type {Promise<void>} */
  const echoed = new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('message', () => resolve())
    // A connected socket gets an error if nobody listens.
    socket.connect(port, '127.0.0.1', () => socket.send('x'))
  })
  return echoed.finally(() => socket.close())
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
function run(command, args) {
  const { error, status } = spawnSync(command, args)
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`exit code ${status}`)
}

/** @returns {Promise<void>} */
async function startThread() {
  const worker = new Worker('', { eval: true })
  return new Promise((resolve, reject) => {
    worker.once('online', () => resolve())
    worker.once('error', reject)
  })
}

/** What this process knows of its own sandbox. */
function ownFacts() {
  const { userLimits = {} } = systemReport()
  const status = contentOf('/proc/self/status')
  return {
    uid: process.getuid?.() ?? -1,
    gid: process.getgid?.() ?? -1,
    groups: process.getgroups?.() ?? [],
    environment: Object.keys(process.env),
    openFiles: openFiles(),
    namespaces: namespaces(),
    limits: Object.fromEntries(Object.entries(userLimits).map(([name, { soft }]) => [name, soft])),
    hasNoNewPrivileges: /^NoNewPrivs:\s*1/m.test(status),
    capabilities: /^CapPrm:\s*([0-9a-f]+)/m.exec(status)?.[1],
  }
}

/**
 * What Node.js reports of its process and the system; takes a few ms.
 * @returns {{ sharedObjects?: string[], userLimits?: Record<string, { soft: number | 'unlimited' }> }}
 */
export function systemReport() {
  const report = /** @type {NodeJS.ProcessReport & { excludeNetwork: boolean }} */ (process.report)
  const { excludeNetwork } = report
  // Else names of network peers would be looked up.
  report.excludeNetwork = true
  try {
    return report.getReport()
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}

/** The kernel's names of the namespaces of this process; two processes in the same one have the same. Empty if it does not tell. */
export function namespaces() {
  const nameOf = (/** @type {string} */ type) => {
    try {
      return readlinkSync(`/proc/self/ns/${type}`)
    } catch {
      return ''
    }
  }
  return Object.fromEntries(['user', 'net', 'mnt', 'pid', 'ipc', 'uts'].map((type) => [type, nameOf(type)]))
}

/** What the descriptors of this process are open on, as the kernel names it, without what every process has of its own. */
export function openFiles() {
  /** @type {Set<string>} */
  const files = new Set()
  try {
    for (const fd of readdirSync('/proc/self/fd')) {
      try {
        files.add(readlinkSync(`/proc/self/fd/${fd}`))
      } catch {
        // The one that the folder itself was read with.
      }
    }
  } catch {
    // No /proc.
  }
  return [...files].filter((file) => !file.startsWith('anon_inode:') && file !== '/dev/null')
}

/**
 * When a process was started, in clock ticks since the machine was: with its id the name of a process for good, for ids are used again.
 * Throws an error of the file system if there is no such process to be seen.
 * @param {number | 'self'} pid
 */
export function startedTicks(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The program's name may hold anything but ends with the last parenthesis; the start is the 22nd field, the 20th after it.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

/** @param {string} path */
function contentOf(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
