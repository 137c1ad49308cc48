export { Admission, type AdmissionOptions } from './admission.ts'
export { FairQueue, type Pushed, type Queued } from './fair-queue.ts'
export { queueTimeoutMs, takeOrder, type QueueOrder, type QueueState, type QueueTimeoutPolicy } from './queue-timeout.ts'
export { StandingQueue, type StandingQueuePolicy } from './standing-queue.ts'
