import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ledger } from '@carpool/ledger'
import { recordAt } from './records.ts'

export interface WritingResult {
  readonly recordsPerSecond: number
  /** CPU time of all threads for each record, without what it takes to make it up, in µs. */
  readonly cpuUsPerRecord: number
  /** Of that, on the thread that hands the records over. */
  readonly callerCpuUsPerRecord: number
}

/**
 * Writes records and keeps `atOnce` of them under way, as so many calls would: each waits until its record is written. It is
 * over when all are in the database.
 */
export async function writeRecords(ledger: Ledger, count: number, atOnce: number, endMs: number): Promise<WritingResult> {
  const makingUs = makingCpuUs(count, endMs)
  let next = 0
  let open = Math.min(atOnce, count)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const writeOn = (error?: Error): void => {
    if (error !== undefined) reject(error)
    if (next < count) ledger.write(recordAt(next++, count, endMs), 1000, writeOn)
    else if (--open === 0) resolve()
  }
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  const startCaller = process.threadCpuUsage()
  for (let begun = open; begun > 0; begun--) writeOn()
  await promise
  const caller = process.threadCpuUsage(startCaller)
  const durationMs = performance.now() - startMs
  await ledger.invocations({ limit: 1 })
  const cpu = process.cpuUsage(startCpu)
  return {
    recordsPerSecond: (count * 1000) / durationMs,
    cpuUsPerRecord: (cpu.user + cpu.system) / count - makingUs,
    callerCpuUsPerRecord: (caller.user + caller.system) / count - makingUs,
  }
}

const MADE_UP = 100_000

/** For each record, in µs. */
function makingCpuUs(count: number, endMs: number): number {
  const start = process.threadCpuUsage()
  for (let index = 0; index < MADE_UP; index++) recordAt(index, count, endMs)
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / MADE_UP
}

/** Of all files of a ledger. */
export async function ledgerBytes(dataDir: string): Promise<number> {
  const names = (await readdir(dataDir)).filter((name) => name.startsWith('ledger.sqlite'))
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(dataDir, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
