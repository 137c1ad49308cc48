import { readdirSync } from 'node:fs'
import type { BenchServer } from '../lib/bench-server.ts'
import { readProc } from '../lib/process-table.ts'
import { readTree, type TreeMember } from '../lib/process-tree.ts'
import { servingHosts } from '../lib/watch/fleet-sample.ts'

/** What a process holds at one moment. */
export interface ProcessLevel extends Pick<TreeMember, 'pid' | 'residentBytes' | 'proportionalBytes'> {
  /** Open descriptors; NaN where they are not ours to look at. */
  readonly descriptors: number
  readonly threads: number
}

/** What a server and its hosts hold. */
export interface Level {
  readonly server: ProcessLevel
  /** Those that take calls. */
  readonly hosts: readonly ProcessLevel[]
  /** The server, and all processes below it. */
  readonly processes: number
  /** JavaScript heap of the server in use: most of it may be garbage. */
  readonly serverHeapBytes: number
}

/** @throws Error if a process is gone meanwhile */
export async function readLevel(server: BenchServer): Promise<Level> {
  const serving = servingHosts(await server.status()).map(({ pid }) => pid)
  const tree = readTree([server.carpool.pid])
  const levelOf = (pid: number): ProcessLevel => {
    const member = tree.find((one) => one.pid === pid)
    if (member === undefined) throw new Error('A process of the server is gone.')
    const { residentBytes, proportionalBytes } = member
    return {
      pid,
      residentBytes,
      ...(proportionalBytes !== undefined && { proportionalBytes }),
      descriptors: openDescriptors(pid),
      threads: threadCount(pid),
    }
  }
  return {
    server: levelOf(server.carpool.pid),
    hosts: serving.map(levelOf),
    processes: tree.length,
    serverHeapBytes: Number(/^nodejs_heap_size_used_bytes (\S+)$/m.exec(await server.carpool.metrics())?.[1]),
  }
}

export function openDescriptors(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return Number.NaN
  }
}

export function threadCount(pid: number): number {
  return Number(/^Threads:\s*(\d+)$/m.exec(readProc(pid, 'status') ?? '')?.[1])
}

/** Mean resident memory of the hosts. */
export function meanHostBytes({ hosts }: Pick<Level, 'hosts'>): number {
  return hosts.reduce((sum, { residentBytes }) => sum + residentBytes, 0) / hosts.length
}
