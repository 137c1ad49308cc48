/** Runs tests in this Node.js, each in a thread of its own. */
import { Worker } from 'node:worker_threads'
import type { Run } from './guest-runner.ts'
import { ORIGIN, type Results, type Roots, type Script } from './scripts.ts'

/** The program of the thread. It asks for files, as tests fetch some. */
const PROGRAM = `
  const { parentPort, workerData, MessageChannel } = require('node:worker_threads')
  const vm = require('node:vm')
  const ownFetch = globalThis.fetch
  const waiting = new Map()
  parentPort.on('message', ({ id, content }) => waiting.get(id)(content))
  let last = 0
  const read = (url) => new Promise((resolve) => { waiting.set(++last, resolve); parentPort.postMessage({ id: last, url }) })
  globalThis.fetch = async function fetch(input, init) {
    if (typeof input !== 'string' || !input.startsWith(workerData.origin + '/')) return ownFetch(input, init)
    const content = await read(input)
    if (content === undefined) throw new TypeError('fetch failed')
    return new Response(content, { headers: { 'content-type': input.endsWith('.json') ? 'application/json' : 'text/plain' } })
  }
  process.on('unhandledRejection', () => {})
  process.on('uncaughtException', (error) => parentPort.postMessage({ thrown: String(error && error.stack) }))
  for (const { name, source } of workerData.scripts) vm.runInThisContext(source, { filename: name })
  globalThis.wptResults.then((text) => parentPort.postMessage({ text }))
`

export async function runInNode(scripts: readonly Script[], roots: Roots, timeoutMs: number): Promise<Run> {
  const worker = new Worker(PROGRAM, { eval: true, workerData: { scripts, origin: ORIGIN }, stdout: true, stderr: true })
  const { promise, resolve } = Promise.withResolvers<Run>()
  const timeout = setTimeout(() => resolve({ results: {}, problem: 'it took too long' }), timeoutMs)
  worker.on('message', (message: { id?: number; url?: string; text?: string; thrown?: string }) => {
    if (message.id !== undefined) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- this is no window
      worker.postMessage({ id: message.id, content: roots.read(new URL(message.url!).pathname) })
    } else if (message.text !== undefined) {
      const {
        status,
        message: problem,
        results,
      } = JSON.parse(message.text) as { status: number; message: string; results: Results }
      resolve({ results, problem: status === 0 ? undefined : problem })
    }
  })
  worker.on('error', (error) => resolve({ results: {}, problem: String(error) }))
  try {
    return await promise
  } finally {
    clearTimeout(timeout)
    await worker.terminate()
  }
}
