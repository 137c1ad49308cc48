/**
 * The thread behind `watchProcesses`: says when it has looked for the first time, and hands over the account when told to stop.
 */
import { constants, setPriority } from 'node:os'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { readTree } from './process-tree.ts'
import { TreeAccount } from './tree-account.ts'
import type { WatchOrder } from './process-watch.ts'

/** Looking takes CPU from what is looked at: with many processes it is done less often, to stay under a fifth of a core. */
const PAUSE_PER_LOOK = 4

const port = parentPort as MessagePort
const { rootPids, intervalMs } = workerData as WatchOrder
const account = new TreeAccount()
let timer: NodeJS.Timeout

function look(): void {
  const startMs = performance.now()
  const startCpu = process.threadCpuUsage()
  account.look(startMs, readTree(rootPids))
  const { user, system } = process.threadCpuUsage(startCpu)
  const leftMs = intervalMs - (performance.now() - startMs)
  timer = setTimeout(look, Math.max(leftMs, ((user + system) / 1000) * PAUSE_PER_LOOK))
}

/** On Linux this is for the thread alone. Without it there is no look at all while a hundred processes start on two cores. */
function takePrecedence(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, constants.priority.PRIORITY_HIGH)
  } catch {
    // Not allowed to this user: the looks are further apart then, and the result says how far.
  }
}

port.once('message', () => {
  clearTimeout(timer)
  account.look(performance.now(), readTree(rootPids))
  port.postMessage(account.usage)
  port.close()
})
takePrecedence()
look()
port.postMessage('looking')
