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
