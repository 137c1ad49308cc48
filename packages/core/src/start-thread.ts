import { extname } from 'node:path'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a worker thread of the server.
 * @param name of its program, without extension
 * @param beside `import.meta.url` of a file in the same folder: the source, or the bundle that was made of it
 * @param onEnd called once, after the last message; the cause is undefined if the thread ended by itself
 */
export function startThread(name: string, beside: string, options: WorkerOptions, onEnd: (cause: unknown) => void): Worker {
  let failure: unknown
  const program = new URL(`./${name}${extname(new URL(beside).pathname)}`, beside)
  // No flags of this process: the hooks of a test runner have no business in a thread.
  const worker = new Worker(program, { ...options, ...withCompileCache(options), execArgv: [] })
  worker.on('error', (cause) => (failure = cause))
  worker.on('exit', (code) => onEnd(failure ?? (code === 0 ? undefined : new Error(`The thread ended with code ${code}.`))))
  return worker
}

/** What a thread without the environment would miss: the folder of compiled code, with which it starts in half the time. */
function withCompileCache({ env }: WorkerOptions): WorkerOptions {
  const folder = process.env['NODE_COMPILE_CACHE']
  if (folder === undefined || typeof env !== 'object') return {}
  return { env: { ...env, NODE_COMPILE_CACHE: folder } }
}
