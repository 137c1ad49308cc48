/**
 * One process per concurrent call, as Lambda runs a function: a busy process takes no second call, an idle one is used again, and a new
 * one starts when none is idle. Above `cap` processes, calls wait in a queue. `node process-per-call.js <file> <cap>`
 */
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { answer, answerFailure, eventOf, listen } from './lambda-http.js'

const [, , file, cap] = process.argv
const workerPath = fileURLToPath(new URL('worker.js', import.meta.url))
const idle = []
const queue = []
const workers = new Set()

function dispatch() {
  while (queue.length > 0 && (idle.length > 0 || workers.size < Number(cap))) run(idle.pop() ?? startWorker(), queue.shift())
}

function startWorker() {
  const worker = fork(workerPath, [file])
  workers.add(worker)
  return worker
}

function run(worker, { request, response }) {
  const settle = (message) => {
    worker.off('message', settle).off('exit', lose)
    idle.push(worker)
    if (message.failure === undefined) answer(response, message.result)
    else answerFailure(response, message.failure)
    dispatch()
  }
  const lose = (code, signal) => {
    workers.delete(worker)
    answerFailure(response, `The process ended with ${signal ?? code}.`)
    dispatch()
  }
  worker.on('message', settle).on('exit', lose)
  worker.send(eventOf(request))
}

listen(
  createServer((request, response) => {
    queue.push({ request, response })
    dispatch()
  }),
)
process.once('exit', () => {
  for (const worker of workers) worker.kill('SIGKILL')
})
