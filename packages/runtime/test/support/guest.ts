import type { GuestBridge, GuestOptions, InvokeHead } from '@carpool/runtime'
import { bundleRuntime } from '@carpool/runtime'
import ivm from 'isolated-vm'

const NAMES = [
  'loaded',
  'answer',
  'fail',
  'canceled',
  'startTimer',
  'stopTimer',
  'startFetch',
  'stopFetch',
  'log',
  'entropy',
  'drain',
] as const
const ENTROPY = String.fromCharCode(...Array.from({ length: 4096 }, (_, index) => (index * 131 + (index >> 5)) & 0xff))

const runtime = await bundleRuntime()

export interface Answer {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly kind: string
  readonly body: string
}

interface Failure {
  readonly outcome: string
  readonly message: string
  readonly stack: string
}

export interface Fetch {
  readonly invocation: number
  readonly head: { method: string; url: string; headers: [string, string][]; redirect: string }
  readonly kind: string
  readonly body: string
}

interface Request extends Partial<InvokeHead> {
  readonly bodyKind?: 'none' | 'text' | 'bytes'
  readonly body?: string
}

type Entry = 'load' | 'invoke' | 'cancel' | 'fireTimer' | 'settleFetch'

/**
 * The real runtime in a real isolate. Entries run synchronously and callbacks come in at once, so whatever an entry does has
 * happened when its call returns.
 */
export class Guest {
  readonly answers = new Map<number, Answer>()
  readonly failures = new Map<number, Failure>()
  readonly logs: { invocation: number; level: string; text: string }[] = []
  readonly timers = new Map<number, number>()
  readonly stoppedTimers: number[] = []
  readonly fetches = new Map<number, Fetch>()
  readonly stoppedFetches: number[] = []
  readonly canceled: number[] = []
  loaded: Record<string, unknown> | undefined
  entropyCalls = 0
  drainCalls = 0
  /** Called for each line of the log, while the guest waits in the middle of its entry. */
  onLog: (text: string) => void = () => {}
  /** What a drain returns. */
  pauseMs = 0
  readonly isolate: ivm.Isolate
  readonly #context: ivm.Context
  readonly #entries: ivm.Reference
  #last = 0

  constructor(memoryLimitMb = 128) {
    this.isolate = new ivm.Isolate({ memoryLimit: memoryLimitMb })
    this.#context = this.isolate.createContextSync()
    const boot = this.isolate
      .compileScriptSync(runtime, { filename: 'carpool:runtime' })
      .runSync(this.#context, { reference: true })
    this.#entries = boot.applySync(undefined, [NAMES.join(','), ...this.#callbacks()], { result: { reference: true } })
  }

  /** Loads a function: `source` is an expression that gives its exports. */
  load(source: string, options: Partial<GuestOptions> = {}): this {
    const code = `(() => { return ${source} })`
    const factory = this.isolate.compileScriptSync(code, { filename: 'function.js' }).runSync(this.#context, { reference: true })
    const given: GuestOptions = {
      functionName: 'sample',
      revision: '0123456789abcdef',
      limits: { memoryMb: 128, cpuMs: 1_000, wallMs: 30_000, concurrency: 100 },
      env: {},
      ...options,
    }
    this.#enter('load', JSON.stringify(given), factory.derefInto())
    return this
  }

  /** Calls the function and returns the number of the invocation. */
  start(request: Request = {}): number {
    const { bodyKind = 'none', body = '', ...rest } = request
    const number = ++this.#last
    const head: InvokeHead = {
      invocationId: `invocation-${number}`,
      method: 'GET',
      url: 'http://localhost:8080/path?a=1',
      headers: [['host', 'localhost:8080']],
      clientIp: '127.0.0.1',
      ...rest,
    }
    this.#enter('invoke', number, JSON.stringify(head), bodyKind, body)
    return number
  }

  /** Calls the function, which must answer within this one entry. */
  call(request: Request = {}): Answer {
    const number = this.start(request)
    const answer = this.answers.get(number)
    if (answer === undefined)
      throw new Error(`no answer: ${JSON.stringify(this.failures.get(number))} ${JSON.stringify(this.logs)}`)
    return answer
  }

  /** Calls the function, which must fail within this one entry. */
  callToFail(request: Request = {}): Failure {
    const number = this.start(request)
    const failure = this.failures.get(number)
    if (failure === undefined) throw new Error(`no failure: ${JSON.stringify(this.answers.get(number))}`)
    return failure
  }

  cancel(invocation: number): void {
    this.#enter('cancel', invocation)
  }

  fireTimer(timer: number): void {
    this.timers.delete(timer)
    this.#enter('fireTimer', timer)
  }

  settleFetch(fetch: number, result: object, kind = 'none', body = ''): void {
    this.#enter('settleFetch', fetch, JSON.stringify(result), kind, body)
  }

  /** How long the last entries took, in ns; nothing the first time. */
  spans(count: number): number[] {
    const told = this.#entries.getSync('spans', { reference: true }).applySync(undefined, [count]) as string
    return told === '' ? [] : told.split(',').map(Number)
  }

  /** Lines of the log as `level: text`. */
  get lines(): string[] {
    return this.logs.map(({ level, text }) => `${level}: ${text}`)
  }

  #enter(entry: Entry, ...args: unknown[]): void {
    const reference = this.#entries.getSync(entry, { reference: true })
    try {
      reference.applySync(undefined, args)
    } catch {
      // isolated-vm throws what was rejected and not handled; the host's entries ignore it.
    }
  }

  #callbacks(): ivm.Callback[] {
    const methods: Record<Exclude<keyof GuestBridge, 'begin' | 'end'>, (...args: never[]) => unknown> = {
      loaded: (report: string) => {
        this.loaded = JSON.parse(report) as Record<string, unknown>
      },
      answer: (invocation: number, head: string, kind: string, body: string) => {
        if (this.answers.has(invocation) || this.failures.has(invocation)) throw new Error('answered twice')
        this.answers.set(invocation, { ...(JSON.parse(head) as Pick<Answer, 'status' | 'headers'>), kind, body })
      },
      fail: (invocation: number, failure: string) => {
        if (this.answers.has(invocation) || this.failures.has(invocation)) throw new Error('answered twice')
        this.failures.set(invocation, JSON.parse(failure) as Failure)
      },
      canceled: (invocation: number) => {
        this.canceled.push(invocation)
      },
      startTimer: (_invocation: number, timer: number, delayMs: number) => {
        this.timers.set(timer, delayMs)
      },
      stopTimer: (timer: number) => {
        this.timers.delete(timer)
        this.stoppedTimers.push(timer)
      },
      startFetch: (invocation: number, fetch: number, head: string, kind: string, body: string) => {
        this.fetches.set(fetch, { invocation, head: JSON.parse(head) as Fetch['head'], kind, body })
      },
      stopFetch: (fetch: number) => {
        this.stoppedFetches.push(fetch)
      },
      log: (invocation: number, level: string, text: string) => {
        this.logs.push({ invocation, level, text })
        this.onLog(text)
      },
      entropy: () => {
        this.entropyCalls++
        return ENTROPY
      },
      drain: () => {
        this.drainCalls++
        return this.pauseMs
      },
    }
    return NAMES.map((name) => new ivm.Callback(methods[name]))
  }
}

/** A guest whose handler is the given function body, with `request`, `env` and `ctx`. */
export function guestOf(body: string, options: Partial<GuestOptions> = {}): Guest {
  const guest = new Guest().load(`({ default: { async fetch(request, env, ctx) { ${body} } } })`, options)
  if (guest.loaded?.['ok'] !== true) throw new Error(JSON.stringify(guest.loaded))
  return guest
}

/** Runs a function body in an isolate of its own and gives what it returns, by way of JSON. */
export function run(body: string, request: Request = {}, options: Partial<GuestOptions> = {}): unknown {
  const guest = guestOf(`return Response.json({ value: await (async () => { ${body} })() })`, options)
  try {
    return (JSON.parse(guest.call(request).body) as { value: unknown }).value
  } finally {
    guest.isolate.dispose()
  }
}
