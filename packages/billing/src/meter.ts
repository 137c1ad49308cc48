import type { UsageTotals } from '@carpool/core'

/** What a price is asked for: a quantity that is read off usage, and how much of the time behind it the CPU was used. */
export interface Meter {
  /** Linear in the totals, so that the prices of rows add up to the price of their sum. */
  readonly quantity: (totals: UsageTotals) => number
  /** Only of meters that measure time: the time that is billed, and the CPU time of the function within it, both in µs. */
  readonly time?: (totals: UsageTotals) => { readonly billedUs: number; readonly cpuUs: number }
}

/**
 * Every meter that a rate card may use, named after the field of `UsageTotals` that it reads; core says what each field means.
 * Units: `Us` is µs, `Ms` is ms, `MbMs` is MiB × ms, `bytes` is bytes, `requests` counts invocations with an outcome, so none
 * that was refused.
 */
export const METERS = {
  requests: { quantity: ({ invocations }) => invocations },
  cpuUs: { quantity: ({ cpuUs }) => cpuUs },
  initCpuUs: { quantity: ({ initCpuUs }) => initCpuUs },
  backgroundCpuUs: { quantity: ({ backgroundCpuUs }) => backgroundCpuUs },
  exec1Ms: { quantity: ({ exec1Ms }) => exec1Ms, time: execution('exec1Ms') },
  exec1MbMs: { quantity: ({ exec1MbMs }) => exec1MbMs, time: execution('exec1Ms') },
  exec100Ms: { quantity: ({ exec100Ms }) => exec100Ms, time: execution('exec100Ms') },
  exec100MbMs: { quantity: ({ exec100MbMs }) => exec100MbMs, time: execution('exec100Ms') },
  init1Ms: { quantity: ({ init1Ms }) => init1Ms, time: start },
  init1MbMs: { quantity: ({ init1MbMs }) => init1MbMs, time: start },
  instanceUs: { quantity: ({ instanceUs }) => instanceUs, time: instance },
  instanceMbMs: { quantity: ({ instanceMbMs }) => instanceMbMs, time: instance },
  bytesIn: { quantity: ({ bytesIn }) => bytesIn },
  bytesOut: { quantity: ({ bytesOut }) => bytesOut },
  egressBytesIn: { quantity: ({ egressBytesIn }) => egressBytesIn },
  egressBytesOut: { quantity: ({ egressBytesOut }) => egressBytesOut },
  openUs: { quantity: ({ openUs }) => openUs },
  sockets: { quantity: ({ sockets }) => sockets },
  socketUs: { quantity: ({ socketUs }) => socketUs },
} as const satisfies Record<string, Meter>

export type MeterName = keyof typeof METERS

function execution(field: 'exec1Ms' | 'exec100Ms'): NonNullable<Meter['time']> {
  return (totals) => ({ billedUs: totals[field] * 1000, cpuUs: totals.cpuUs })
}

function start({ init1Ms, initCpuUs }: UsageTotals): { billedUs: number; cpuUs: number } {
  return { billedUs: init1Ms * 1000, cpuUs: initCpuUs }
}

/** A call is in its instance from its start on, so the CPU time of starts belongs to the time of instances. */
function instance({ instanceUs, cpuUs, initCpuUs }: UsageTotals): { billedUs: number; cpuUs: number } {
  return { billedUs: instanceUs, cpuUs: cpuUs + initCpuUs }
}
