export { CPU_PARTS, CpuAccount, type CpuPart, type HostCpuTime } from './cpu-account.ts'
export type { EgressReading } from './egress-metrics.ts'
export type { FleetReading, HostReading } from './fleet-reading.ts'
export { ServerMetrics, START_RESULTS, type ServerMetricsOptions, type StartResult } from './server-metrics.ts'
