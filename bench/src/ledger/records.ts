import type { InvocationRecord } from '@carpool/core'

const FUNCTIONS = 200
const OWNERS = 5
const HOUR_MS = 3_600_000
/** Over how long the calls are spread: as long as there are rows by default. */
export const SPREAD_MS = 30 * 24 * HOUR_MS
/** One in so many has failed, was refused, or came cold. */
const FAILED_EVERY = 50
const REFUSED_EVERY = 500
const COLD_EVERY = 200

/**
 * The record of one of many calls: of functions in turn, evenly spread over time, with figures that differ as those of real
 * calls do. The same index gives the same record.
 */
export function recordAt(index: number, count: number, endMs: number): InvocationRecord {
  const startedAtMs = endMs - SPREAD_MS + Math.floor((index / count) * SPREAD_MS)
  const functionIndex = scattered(index, 1) % FUNCTIONS
  const isCold = index % COLD_EVERY === 0
  const isFailed = index % FAILED_EVERY === 1
  const isRefused = index % REFUSED_EVERY === 2
  const cpuUs = isRefused ? 0 : 150 + (scattered(index, 2) % 20_000)
  const queueUs = 20 + (scattered(index, 3) % 500)
  const initUs = isCold ? 4_000 + (scattered(index, 4) % 4_000) : 0
  return {
    id: uuidAt(index, startedAtMs),
    functionName: `function-${functionIndex}`,
    revision: `revision-${functionIndex}`,
    owner: `owner-${functionIndex % OWNERS}`,
    trigger: 'http',
    startedAtMs,
    start: isCold && !isRefused ? 'isolate-cold' : 'warm',
    outcome: isRefused ? 'refused' : isFailed ? 'exception' : 'ok',
    ...(isRefused && { error: 'too-many-requests' as const }),
    status: isRefused ? 429 : isFailed ? 500 : 200,
    host: isRefused ? 0 : 1,
    queueUs,
    wallUs: queueUs + initUs + cpuUs + (scattered(index, 5) % 200_000),
    memoryMb: 256,
    bytesIn: scattered(index, 6) % 2_000,
    bytesOut: isRefused ? 0 : scattered(index, 7) % 20_000,
    cpuUs,
    initUs,
    initCpuUs: Math.floor(initUs * 0.8),
    memoryPeakKb: 2_000 + (scattered(index, 8) % 10_000),
    egressBytesOut: 0,
    egressBytesIn: 0,
    openUs: 0,
    sockets: 0,
    socketUs: 0,
    attempts: isRefused ? 0 : 1,
  }
}

/** A number that looks like chance, always the same for the same arguments. */
function scattered(index: number, of: number): number {
  let value = Math.imul(index ^ (of * 0x9e3779b9), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

/** UUID, version 7. */
function uuidAt(index: number, timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, '0')
  const low = (scattered(index, 9) % 0x1000).toString(16).padStart(3, '0')
  const high = scattered(index, 10).toString(16).padStart(8, '0')
  const counter = index.toString(16).padStart(7, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${low}-8${high.slice(0, 3)}-${high.slice(3)}${counter}`
}
