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

/** Writes records and keeps `atOnce` of them under way, as so many calls would: each waits until its record is committed. */
export async function writeRecords(ledger: Ledger, count: number, atOnce: number, endMs: number): Promise<WritingResult> {
  const makingUs = makingCpuUs(count, endMs)
  let next = 0
  const writeOn = async (): Promise<void> => {
    while (next < count) await ledger.write(recordAt(next++, count, endMs), 1000)
  }
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  const startCaller = process.threadCpuUsage()
  await Promise.all(Array.from({ length: atOnce }, writeOn))
  const durationMs = performance.now() - startMs
  const cpu = process.cpuUsage(startCpu)
  const caller = process.threadCpuUsage(startCaller)
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
