/** The variables of the function, as its config and its deploy set them. */
export type Env = Readonly<Record<string, string>>

/** What a handler knows of its own call. */
export interface FunctionContext {
  readonly invocationId: string
  readonly functionName: string
  readonly revision: string
  /** Lets work go on after the response. If it fails, that is logged and changes nothing for the caller. */
  waitUntil(promise: PromiseLike<unknown>): void
  /** Does nothing; here so that handlers written for other platforms run. */
  passThroughOnException(): void
  /** Milliseconds until the function's time limit ends the call; never below 0. */
  getRemainingTimeInMillis(): number
}

/** A function that answers web requests: `export default { fetch }`. `E` types the variables that it expects. */
export interface FetchHandler<E = Env> {
  /** The path of `request.url` begins after the function's name. */
  fetch(request: Request, env: E, ctx: FunctionContext): Response | Promise<Response>
}

/** Gives its argument back: for the types. `export default defineFunction({ fetch(request) { ... } })` */
export function defineFunction<E = Env>(handler: FetchHandler<E>): FetchHandler<E> {
  return handler
}

/** What `carpool.config.ts` may say. Every setting can be left out. */
export interface FunctionConfig {
  /** Name under which the function answers: 1 to 63 of a-z, 0-9 and "-". Default: the folder's name. */
  readonly name?: string
  /** Entry file, relative to the folder. Default: `module` or `main` of package.json, `index.*` or `src/index.*`. */
  readonly entry?: string
  /**
   * `src/index.handler`: a file without its extension, and one of its exports; or only the export. Default: `default`, else
   * `handler`.
   */
  readonly handler?: string
  /** Memory limit in MiB, 8 to 4096. Default: 256. */
  readonly memoryMb?: number
  /** Most CPU time of one call in ms, 5 to 900000; waiting takes none. Default: 1000. */
  readonly cpuMs?: number
  /** Longest time to an answer, or to the head of one that streams, in ms, 10 to 900000. Default: 30000. */
  readonly timeoutMs?: number
  /**
   * Longest time that an answer that streams, or a WebSocket, stays open after its head in ms, up to 86400000; 0: no limit.
   * Default: 3600000.
   */
  readonly streamMs?: number
  /** Longest time in which nothing comes or goes of what streams in ms, up to 86400000; 0: no limit. Default: 300000. */
  readonly idleMs?: number
  /** Most calls at the same time, 1 to 100000. Default: 10000. */
  readonly concurrency?: number
  /** Variables, given to the handler as `env` and readable as `process.env`. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Hosts that it may fetch from: names (`api.example.com`), names below one (`*.example.com`), or addresses, each with or
   * without a port (`:443`). Redirects are held to it too. Default: every host that the server permits; an empty list: none.
   */
  readonly egress?: readonly string[]
}

/** Gives its argument back: for the types. `export default defineConfig({ memoryMb: 64 })` */
export function defineConfig(config: FunctionConfig): FunctionConfig {
  return config
}
