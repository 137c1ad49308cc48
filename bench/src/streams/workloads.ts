export type WorkloadName = 'upload' | 'download' | 'pass' | 'fetch' | 'transform'

export interface Workload {
  readonly name: WorkloadName
  readonly what: string
  /** Whether the client sends the bytes, and whether it gets them. */
  readonly isSent: boolean
  readonly isReceived: boolean
  /** What every byte is changed by on the way. */
  readonly mask: number
  /** Of the rate of plain Node.js. Absent: only told. */
  readonly minRatio?: number
}

export const WORKLOADS: readonly Workload[] = [
  { name: 'upload', what: 'the function counts what it is sent', isSent: true, isReceived: false, mask: 0 },
  { name: 'download', what: 'the function makes chunks of 64 KiB', isSent: false, isReceived: true, mask: 0 },
  { name: 'pass', what: 'the body of the request is the answer', isSent: true, isReceived: true, mask: 0, minRatio: 0.5 },
  { name: 'fetch', what: 'the body of a fetch is the answer', isSent: false, isReceived: true, mask: 0, minRatio: 0.5 },
  { name: 'transform', what: 'the function changes every byte', isSent: true, isReceived: true, mask: 0x20, minRatio: 0.3 },
]
