import { NO_USAGE, type InvocationUsage } from '@carpool/core'

/**
 * An InvocationUsage as it travels: `cpuUs, memoryPeakKb`, and unless the rest is as usual, `initUs, initCpuUs, egressBytesOut,
 * egressBytesIn, attempts`, and of one with sockets, `sockets, socketUs`. Every answer carries one, so names would cost.
 */
export type PackedUsage = readonly number[]

export function packUsage(usage: InvocationUsage): PackedUsage {
  const { cpuUs, memoryPeakKb, initUs, initCpuUs, egressBytesOut, egressBytesIn, attempts, sockets, socketUs } = usage
  if (sockets + socketUs > 0)
    return [cpuUs, memoryPeakKb, initUs, initCpuUs, egressBytesOut, egressBytesIn, attempts, sockets, socketUs]
  if (attempts === 1 && initUs + initCpuUs + egressBytesOut + egressBytesIn === 0) return [cpuUs, memoryPeakKb]
  return [cpuUs, memoryPeakKb, initUs, initCpuUs, egressBytesOut, egressBytesIn, attempts]
}

/**
 * Reads what a host sent, on which nothing depends but the bill of its own functions: what is no whole number from 0 on counts as
 * 0.
 */
export function unpackUsage(packed: unknown): InvocationUsage {
  if (!Array.isArray(packed)) return NO_USAGE
  const [cpuUs, memoryPeakKb, initUs, initCpuUs, egressBytesOut, egressBytesIn, attempts, sockets, socketUs] =
    packed as readonly unknown[]
  return {
    cpuUs: whole(cpuUs),
    initUs: whole(initUs),
    initCpuUs: whole(initCpuUs),
    memoryPeakKb: whole(memoryPeakKb),
    egressBytesOut: whole(egressBytesOut),
    egressBytesIn: whole(egressBytesIn),
    sockets: whole(sockets),
    socketUs: whole(socketUs),
    attempts: packed.length > 2 ? whole(attempts) : 1,
  }
}

export function whole(figure: unknown): number {
  return Number.isSafeInteger(figure) && (figure as number) > 0 ? (figure as number) : 0
}
