import type { InvocationUsage } from '@carpool/core'

/** An InvocationUsage as it travels: its figures in the order of {@link FIELDS}. Every answer carries one, so names would cost. */
export type PackedUsage = readonly number[]

const FIELDS = [
  'cpuUs',
  'initUs',
  'initCpuUs',
  'memoryPeakKb',
  'egressBytesOut',
  'egressBytesIn',
  'attempts',
] as const satisfies ReadonlyArray<keyof InvocationUsage>

export function packUsage(usage: InvocationUsage): PackedUsage {
  return FIELDS.map((field) => usage[field])
}

/** Reads what a host sent, on which nothing depends but the bill of its own functions: what is no whole number from 0 on counts as 0. */
export function unpackUsage(packed: unknown): InvocationUsage {
  const figures: readonly unknown[] = Array.isArray(packed) ? packed : []
  const [cpuUs, initUs, initCpuUs, memoryPeakKb, egressBytesOut, egressBytesIn, attempts] = figures
  return {
    cpuUs: whole(cpuUs),
    initUs: whole(initUs),
    initCpuUs: whole(initCpuUs),
    memoryPeakKb: whole(memoryPeakKb),
    egressBytesOut: whole(egressBytesOut),
    egressBytesIn: whole(egressBytesIn),
    attempts: whole(attempts),
  }
}

export function whole(figure: unknown): number {
  return Number.isSafeInteger(figure) && (figure as number) > 0 ? (figure as number) : 0
}
