import autocannon from 'autocannon'

export interface LoadOptions {
  readonly url: string
  /** Default: GET. */
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly connections: number
  readonly durationMs: number
}

export interface LoadResult {
  readonly durationMs: number
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** Of one response, with its head. */
  readonly responseBytes: number
  /** CPU of the load generator over the time it ran: near 1 it was the generator that set the pace, not the server. */
  readonly generatorCores: number
}

/**
 * Keeps each connection busy with one request after the other for a while.
 * @throws Error if any request failed or was not answered with 2xx: a rate with failures in it means nothing
 */
export async function runClosedLoop({ durationMs, ...request }: LoadOptions): Promise<LoadResult> {
  const startCpu = process.cpuUsage()
  const result = await autocannon({ ...request, duration: durationMs / 1000 })
  const { user, system } = process.cpuUsage(startCpu)
  const { errors, timeouts, mismatches, non2xx, latency, throughput, duration } = result
  const answered = result['2xx']
  if (errors + timeouts + mismatches + non2xx > 0 || answered === 0) {
    throw new Error(
      `${request.url}: ${answered} answers, but ${non2xx} were not 2xx and ${errors} failed, ${timeouts} of them timed out.`,
    )
  }
  return {
    durationMs: duration * 1000,
    requests: answered,
    requestsPerSecond: answered / duration,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    maxMs: latency.max,
    responseBytes: throughput.total / answered,
    generatorCores: (user + system) / 1e6 / duration,
  }
}
