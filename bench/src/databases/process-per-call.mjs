/**
 * One process per concurrent call, as platforms have it that keep calls apart so: a busy one takes no second call, an idle one
 * is used again. Each has a pool of its own, and so a connection of its own.
 */
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { ask } from './pool.mjs'

if (process.send !== undefined && process.argv[2] === 'worker') {
  process.on('message', () => void ask().then((answer) => process.send(`${answer}`)))
} else {
  const idle = []
  const server = createServer((_request, response) => {
    const worker = idle.pop() ?? fork(import.meta.filename, ['worker'])
    worker.once('message', (text) => {
      idle.push(worker)
      response.end(text)
    })
    worker.send('')
  })
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })))
}
