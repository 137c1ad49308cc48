import { execUs, type InvocationRecord } from '@carpool/core'

/**
 * Where the time of an invocation went, as the value of a `Server-Timing` header: `queue` until a host took it, `init` while an isolate was
 * made, `exec` in which the function ran or waited, and of that `cpu` in which it ran; in ms.
 * @see https://www.w3.org/TR/server-timing/
 */
export function serverTiming(record: InvocationRecord): string {
  const { queueUs, initUs, cpuUs } = record
  return `queue;dur=${queueUs / 1000}, init;dur=${initUs / 1000}, cpu;dur=${cpuUs / 1000}, exec;dur=${execUs(record) / 1000}`
}
