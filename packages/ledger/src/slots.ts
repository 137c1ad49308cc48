import type { BackgroundUsage, InvocationRecord } from '@carpool/core'
import { writeUuid } from './uuid-bytes.ts'

/** Where each figure of a record stands, in float64 places. The id takes the last two. What is changed here makes another version of the journal. */
export const SLOT = {
  sequence: 0,
  /** The key of its name in the journal. */
  revisionKey: 1,
  /** The key of their name in the journal, or {@link BACKGROUND}. */
  words: 2,
  startedAtMs: 3,
  status: 4,
  host: 5,
  attempts: 6,
  queueUs: 7,
  initUs: 8,
  wallUs: 9,
  cpuUs: 10,
  initCpuUs: 11,
  instanceUs: 12,
  memoryPeakKb: 13,
  bytesIn: 14,
  bytesOut: 15,
  egressBytesIn: 16,
  egressBytesOut: 17,
  id: 18,
} as const
export const RECORD_BYTES = 20 * 8

/** In place of the words: the record is one of background usage. */
export const BACKGROUND = -1

/** The last instant that a Date can tell. */
const MAX_TIME_MS = 8.64e15

/**
 * What a column of the ledger takes: a whole number from 0 to 2^53 - 1. Some figures come from a process that runs user code, so anything
 * may be among them.
 */
export function clampFigure(value: number): number {
  if (!(value > 0) || value === Number.POSITIVE_INFINITY) return 0
  return value < Number.MAX_SAFE_INTEGER ? Math.floor(value) : Number.MAX_SAFE_INTEGER
}

/** Gives false if the id is no UUID: what is there is no record then. Sequence, revision and words are left to the caller. */
export function encodeInvocation(
  slots: Float64Array,
  bytes: Uint8Array,
  base: number,
  record: InvocationRecord,
  instanceUs: number,
): boolean {
  if (!writeUuid(record.id, bytes, (base + SLOT.id) * 8)) return false
  slots[base + SLOT.startedAtMs] = Math.min(clampFigure(record.startedAtMs), MAX_TIME_MS)
  slots[base + SLOT.status] = clampFigure(record.status)
  slots[base + SLOT.host] = clampFigure(record.host)
  slots[base + SLOT.attempts] = clampFigure(record.attempts)
  slots[base + SLOT.queueUs] = clampFigure(record.queueUs)
  slots[base + SLOT.initUs] = clampFigure(record.initUs)
  slots[base + SLOT.wallUs] = clampFigure(record.wallUs)
  slots[base + SLOT.cpuUs] = clampFigure(record.cpuUs)
  slots[base + SLOT.initCpuUs] = clampFigure(record.initCpuUs)
  slots[base + SLOT.instanceUs] = clampFigure(instanceUs)
  slots[base + SLOT.memoryPeakKb] = clampFigure(record.memoryPeakKb)
  slots[base + SLOT.bytesIn] = clampFigure(record.bytesIn)
  slots[base + SLOT.bytesOut] = clampFigure(record.bytesOut)
  slots[base + SLOT.egressBytesIn] = clampFigure(record.egressBytesIn)
  slots[base + SLOT.egressBytesOut] = clampFigure(record.egressBytesOut)
  return true
}

export function encodeBackground(slots: Float64Array, base: number, usage: BackgroundUsage): void {
  slots[base + SLOT.startedAtMs] = Math.min(clampFigure(usage.atMs), MAX_TIME_MS)
  slots[base + SLOT.host] = clampFigure(usage.host)
  slots[base + SLOT.cpuUs] = clampFigure(usage.cpuUs)
  slots[base + SLOT.egressBytesIn] = clampFigure(usage.egressBytesIn)
  slots[base + SLOT.egressBytesOut] = clampFigure(usage.egressBytesOut)
}
