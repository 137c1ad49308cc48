export { Admission } from './admission.ts'
export { CallQueue, queueTimeoutMs, StandingQueue, takeOrder, type QueuePolicy } from './call-queue.ts'
export { FairQueue, type Queued } from './fair-queue.ts'
