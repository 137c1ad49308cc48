export { Admission } from './admission.ts'
export { CallQueue, type QueuePolicy } from './call-queue.ts'
