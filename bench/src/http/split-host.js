/**
 * The host process of split-gateway.js: an isolate that is entered on a thread of isolated-vm, with all that waits in one entry.
 */
import { Socket } from 'node:net'
import ivm from 'isolated-vm'

const HANDLERS = { hello: `() => 'hello'`, json: '(body) => JSON.stringify(JSON.parse(body))' }
const [workload] = process.argv.slice(2)
const guest = `
  const handler = ${HANDLERS[workload]}
  globalThis.answer = (batch) => JSON.stringify(JSON.parse(batch).map(({ number, body }) => [number, handler(body)]))
`
const isolate = new ivm.Isolate({ memoryLimit: 128 })
const context = isolate.createContextSync()
isolate.compileScriptSync(guest).runSync(context)
const answer = context.global.getSync('answer', { reference: true })
const socket = new Socket({ fd: 3, readable: true, writable: true }).setEncoding('latin1')
let waiting = []
let unread = ''
let isEntered = false

socket.on('data', (text) => {
  unread += text
  const end = unread.lastIndexOf('\n')
  if (end < 0) return
  waiting.push(...unread.slice(0, end).split('\n'))
  unread = unread.slice(end + 1)
  void enter()
})
socket.on('close', () => process.exit(0))

async function enter() {
  if (isEntered) return
  isEntered = true
  while (waiting.length > 0) {
    const batch = `[${waiting.join(',')}]`
    waiting = []
    /** @type {string} */
    const answers = await answer.apply(undefined, [batch])
    socket.write(`${answers}\n`, 'latin1')
  }
  isEntered = false
}
