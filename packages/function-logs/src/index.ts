export type { LogProblem } from './drop-report.ts'
export { FunctionLogs, type FunctionLogsOptions, type LogSelection, type TailQuery } from './function-logs.ts'
