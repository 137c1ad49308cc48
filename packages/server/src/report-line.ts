import { execUs, type InvocationRecord, type LogLine } from '@carpool/core'

/** What an invocation came to, as one line of its function's log; made from the ledger when the log is read. */
export function reportLine(record: InvocationRecord): LogLine {
  const { id, functionName, revision, outcome, error, status, start, wallUs, cpuUs, queueUs, initUs, memoryMb, memoryPeakKb } =
    record
  const how = outcome === 'refused' ? `refused, ${error}` : outcome
  const parts = [
    `${how} ${status} in ${milliseconds(wallUs)}`,
    `exec ${milliseconds(execUs(record))}`,
    `billed ${Math.ceil(execUs(record) / 1000)} ms`,
    `cpu ${milliseconds(cpuUs)}`,
    `queue ${milliseconds(queueUs)}`,
    `init ${milliseconds(initUs)}`,
    `memory ${memoryMb} MiB, peak ${Math.ceil(memoryPeakKb / 1024)} MiB`,
    start,
  ]
  return {
    time: new Date(record.startedAtMs + wallUs / 1000).toISOString(),
    level: 'info',
    stream: 'carpool',
    function: functionName,
    revision,
    invocationId: id,
    msg: `report: ${parts.join('; ')}`,
  }
}

function milliseconds(us: number): string {
  return `${(us / 1000).toFixed(us < 100_000 ? 2 : 0)} ms`
}
