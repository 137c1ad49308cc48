export type { LogProblem } from './drop-report.ts'
export { FunctionLogs, type FunctionLogsOptions, type TailQuery } from './function-logs.ts'
