import { setTimeout as delay } from 'node:timers/promises'
import { readProc } from '../lib/process-table.ts'
import type { Call } from '../lib/load/load-order.ts'
import { epochMs } from '../lib/load/timed-call.ts'

/** A process that was killed. Times are in ms of the epoch. */
export interface Kill {
  readonly pid: number
  /** When the signal was sent. */
  readonly atMs: number
  /** When the process was seen to have ended: until shortly before, its socket is open and takes what is sent. */
  readonly goneMs: number
}

const LOOK_MS = 1
/** Dead, or waiting to be reaped: all its descriptors are closed. */
const ENDED = /\) [ZX] /
/**
 * What the server may still send to a process that has ended, because the news of its end and a call come in the same turn of
 * its event loop.
 */
const NOTICE_MS = 10

/** Sends SIGKILL and waits for the end. @throws Error of the system if there is no such process */
export async function killNow(pid: number): Promise<Kill> {
  const atMs = epochMs()
  process.kill(pid, 'SIGKILL')
  while (!ENDED.test(readProc(pid, 'stat') ?? ') X ')) await delay(LOOK_MS)
  return { pid, atMs, goneMs: epochMs() }
}

/** The kill during which a call was in flight: sent before the process had ended, and not answered before the signal. */
export function killDuring({ sentMs, endedMs }: Pick<Call, 'sentMs' | 'endedMs'>, kills: readonly Kill[]): Kill | undefined {
  return kills.find(({ atMs, goneMs }) => sentMs <= goneMs + NOTICE_MS && endedMs >= atMs)
}
