/**
 * The part of autocannon that the benches use; it comes without types. Its options for a rate are left out on purpose: its
 * correction for coordinated omission, which they switch on, invents samples.
 */
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly method?: 'GET' | 'POST'
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    readonly connections: number
    /** Seconds. */
    readonly duration: number
  }

  interface Result {
    readonly '2xx': number
    readonly 'non2xx': number
    readonly 'errors': number
    readonly 'timeouts': number
    readonly 'mismatches': number
    /** Seconds. */
    readonly 'duration': number
    /** In ms. */
    readonly 'latency': { readonly p50: number; readonly p99: number; readonly max: number }
    /** In bytes, read from the sockets. */
    readonly 'throughput': { readonly total: number }
  }

  export default function autocannon(options: Options): Promise<Result>
}
