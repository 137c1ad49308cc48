export { CPU_PARTS, CpuAccount, type CpuPart, type HostCpuTime } from './cpu-account.ts'
export { ServerMetrics } from './server-metrics.ts'
