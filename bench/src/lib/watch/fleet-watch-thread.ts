/** The thread behind `watchFleet`. */
import { Agent, get } from 'node:http'
import { constants, setPriority } from 'node:os'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import type { StatusInfo } from '@carpool/core'
import { epochMs } from '../load/timed-call.ts'
import { fleetSample, type FleetSample } from './fleet-sample.ts'
import type { FleetWatchOrder } from './fleet-watch.ts'
import { readHostProcesses } from './host-processes.ts'

const port = parentPort as MessagePort
const { adminUrl, token, serverPid, intervalMs } = workerData as FleetWatchOrder
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const samples: FleetSample[] = []
let looking: Promise<void>
let isStopped = false
let timer: NodeJS.Timeout

function readStatus(): Promise<StatusInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<StatusInfo>()
  get(`${adminUrl}/v1/status`, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => (text += part))
    response.on('error', reject)
    response.on('end', () =>
      response.statusCode === 200
        ? resolve(JSON.parse(text) as StatusInfo)
        : reject(new Error(`/v1/status answered ${String(response.statusCode)}: ${text}`)),
    )
  }).on('error', reject)
  return promise
}

async function look(): Promise<void> {
  const beganMs = performance.now()
  const processes = readHostProcesses(serverPid)
  samples.push(fleetSample(epochMs(), await readStatus(), processes))
  if (!isStopped) timer = setTimeout(lookAgain, Math.max(1, intervalMs - (performance.now() - beganMs)))
}

function lookAgain(): void {
  looking = look()
}

/** On Linux this is for the thread alone; a machine under full load would leave seconds without a sample. */
function takePrecedence(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, constants.priority.PRIORITY_HIGH)
  } catch {
    // Not allowed to this user: the samples are further apart then, and the result says how far.
  }
}

takePrecedence()
looking = look()
await looking
port.once('message', () => {
  isStopped = true
  clearTimeout(timer)
  // What is under way is a sample too.
  void looking.then(() => {
    port.postMessage(samples)
    agent.destroy()
    port.close()
  })
})
port.postMessage('looking')
