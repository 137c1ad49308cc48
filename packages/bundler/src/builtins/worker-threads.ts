/** `node:worker_threads` in a function: it is the main thread, and there is no other. */
import { refuse } from './refuse.ts'

const { MessageChannel, MessagePort } = globalThis as Record<string, unknown>
const { BroadcastChannel, Worker, moveMessagePortToContext, postMessageToThread, receiveMessageOnPort } = refuse(
  'worker_threads',
  'it runs on one thread',
  ['BroadcastChannel', 'Worker', 'moveMessagePortToContext', 'postMessageToThread', 'receiveMessageOnPort'],
)
const isMainThread = true
const isInternalThread = false
const threadId = 0
const threadName = ''
const parentPort = null
const workerData = null
const resourceLimits = {}
const SHARE_ENV = Symbol.for('nodejs.worker_threads.SHARE_ENV')
const environment = new Map<unknown, unknown>()
const getEnvironmentData = (key: unknown): unknown => environment.get(key)
const setEnvironmentData = (key: unknown, value: unknown): void => {
  environment.set(key, value)
}
const markAsUntransferable = (): void => {}
const isMarkedAsUntransferable = (): boolean => false
const markAsUncloneable = (): void => {}
const locks = undefined

export {
  BroadcastChannel,
  getEnvironmentData,
  isInternalThread,
  isMainThread,
  isMarkedAsUntransferable,
  locks,
  markAsUncloneable,
  markAsUntransferable,
  MessageChannel,
  MessagePort,
  moveMessagePortToContext,
  parentPort,
  postMessageToThread,
  receiveMessageOnPort,
  resourceLimits,
  setEnvironmentData,
  SHARE_ENV,
  threadId,
  threadName,
  Worker,
  workerData,
}
export default {
  BroadcastChannel,
  getEnvironmentData,
  isInternalThread,
  isMainThread,
  isMarkedAsUntransferable,
  locks,
  markAsUncloneable,
  markAsUntransferable,
  MessageChannel,
  MessagePort,
  moveMessagePortToContext,
  parentPort,
  postMessageToThread,
  receiveMessageOnPort,
  resourceLimits,
  setEnvironmentData,
  SHARE_ENV,
  threadId,
  threadName,
  Worker,
  workerData,
}
