import {
  type BodyKind,
  type GuestBridge,
  type GuestOptions,
  type InvokeHead,
  BODY_KINDS,
  bundleRuntime,
  CREDIT_UNIT,
  ENTRIES,
  LOG_LEVELS,
  OF_CALL,
  OWNER_MASK,
  splitScripts,
  SAYS,
  STREAM_FLAGS,
} from '@carpool/runtime'
import { createRequire } from 'node:module'
import ivm from 'isolated-vm'
import '../../../../test/support/own-exit.ts'

const NAMES = ['say', 'drain'] as const satisfies ReadonlyArray<keyof GuestBridge>
/** What the addon has of them. */
export const NATIVES = ['library', 'random'] as const satisfies ReadonlyArray<keyof GuestBridge>

const platform = `${process.platform}-${process.arch}-${process.versions.modules}`
const addonFile = createRequire(import.meta.url).resolve(`../../../../host/native/prebuilt/${platform}.node`)
const nativeModule = new ivm.NativeModule(addonFile)
const addon = createRequire(import.meta.url)(addonFile) as { addScript(name: string, source: string): number }

/** The index of the core in the addon. */
export const RUNTIME = splitScripts(await bundleRuntime()).map((source) => addon.addScript('carpool:runtime', source))[0]!

/** Bytes cannot cross as they are: the addon turns them into text as well. */
const TEXTUAL = `(say) => {
  const { fromCharCode } = String
  const { apply } = Reflect
  return (op, a, b, c, text, body) => {
    if (typeof body === 'string') return say(op, a, b, c, text, body)
    let bytes = ''
    for (let start = 0; start < body.length; start += 4096) bytes += apply(fromCharCode, undefined, body.subarray(start, start + 4096))
    return say(op, a, b, c, text, bytes)
  }
}`

/** What the addon gives to a context: `boot(index, names, ...functions)`, and the functions that go with it, in that order. */
export function addonOf(context: ivm.Context): { readonly boot: ivm.Reference; readonly natives: readonly ivm.Reference[] } {
  const native = nativeModule.createSync(context)
  return {
    boot: native.getSync('boot', { reference: true }),
    natives: NATIVES.map((name) => native.getSync(name, { reference: true })),
  }
}

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

/** What the guest has said of one direction of a stream, or of what it takes of the other. */
export interface Streamed {
  body: string
  /** Each part that came, as its length. */
  readonly parts: number[]
  readonly messages: { readonly kind: 'text' | 'bytes'; readonly text: string; readonly more: boolean }[]
  hasEnded: boolean
  closing: string
  /** Of what was sent to it. */
  credited: number
  /** Why what it sends broke off, */
  broke: string | undefined
  /** and why it takes no more. */
  stopped: string | undefined
}

interface Request extends Partial<InvokeHead> {
  readonly bodyKind?: BodyKind
  readonly body?: string
}

/**
 * The real runtime in a real isolate. Entries run synchronously and callbacks come in at once, so whatever an entry does has
 * happened when its call returns.
 */
export class Guest {
  readonly answers = new Map<number, Answer>()
  readonly failures = new Map<number, Failure>()
  readonly logs: { invocation: number; level: string; text: string }[] = []
  /** Lines of the log that are of promises which nobody awaits. */
  readonly rejections: string[] = []
  readonly timers = new Map<number, number>()
  /** The number of each timer that was started, as often as it was. */
  readonly startedTimers: number[] = []
  readonly stoppedTimers: number[] = []
  readonly fetches = new Map<number, Fetch>()
  readonly stoppedFetches: number[] = []
  readonly canceled: number[] = []
  /** Heads whose bodies stream behind them. */
  readonly heads = new Map<number, Pick<Answer, 'status' | 'headers'>>()
  readonly endedAnswers: number[] = []
  readonly sockets = new Map<number, { readonly invocation: number; readonly target: unknown }>()
  readonly startedTls: { readonly socket: number; readonly options: unknown }[] = []
  readonly stoppedSockets: number[] = []
  readonly joined: { readonly from: readonly number[]; readonly to: readonly number[] }[] = []
  readonly #streams = new Map<number, Streamed>()
  #awaitsEnd = false
  loaded: Record<string, unknown> | undefined
  drainCalls = 0
  /** Called for each line of the log, while the guest waits in the middle of its entry. */
  onLog: (text: string) => void = () => {}
  /** Whether saying this fails within the guest, as for want of memory. */
  failsToSay: (op: number, a: number, c: number) => boolean = () => false
  /** What a drain returns. */
  pauseMs = 0
  readonly isolate: ivm.Isolate
  readonly #context: ivm.Context
  readonly #entries: ivm.Reference
  #last = 0

  constructor(memoryLimitMb = 128) {
    this.isolate = new ivm.Isolate({ memoryLimit: memoryLimitMb })
    this.#context = this.isolate.createContextSync()
    const { boot, natives } = addonOf(this.#context)
    const names = [...NAMES, ...NATIVES].join(',')
    const [say, ...others] = this.#callbacks()
    const textual = this.isolate.compileScriptSync(TEXTUAL).runSync(this.#context, { reference: true })
    const given = textual.applySync(undefined, [say], { result: { reference: true } }) as ivm.Reference
    this.#entries = boot.applySync(
      undefined,
      [RUNTIME, names, given.derefInto(), ...others, ...natives.map((one) => one.derefInto())],
      {
        result: { reference: true },
      },
    )
  }

  /** Loads a function: `source` is an expression that gives its exports, with `carpoolSupport_`, which bundles take. */
  load(source: string, options: Partial<GuestOptions> = {}): this {
    const code = `((carpoolSupport_) => { return ${source} })`
    const factory = this.isolate.compileScriptSync(code, { filename: 'function.js' }).runSync(this.#context, { reference: true })
    const given: GuestOptions = {
      functionName: 'sample',
      revision: '0123456789abcdef',
      limits: { memoryMb: 128, cpuMs: 1_000, wallMs: 30_000, streamMs: 0, idleMs: 0, concurrency: 100 },
      env: {},
      ...options,
    }
    this.#call('load', JSON.stringify(given), factory.derefInto())
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
    this.#enter(ENTRIES.invoke, number, JSON.stringify(head), bodyKind, body)
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
    this.#enter(ENTRIES.cancel, invocation)
  }

  fireTimer(timer: number): void {
    this.timers.delete(timer)
    this.#enter(ENTRIES.fireTimer, timer)
  }

  /** What the guest has said of a stream. @param owner OF_CALL, OF_FETCH or OF_SOCKET */
  streamOf(owner: number, number: number): Streamed {
    const key = number * CREDIT_UNIT + owner
    let found = this.#streams.get(key)
    if (found === undefined) {
      found = {
        body: '',
        parts: [],
        messages: [],
        hasEnded: false,
        closing: '',
        credited: 0,
        broke: undefined,
        stopped: undefined,
      }
      this.#streams.set(key, found)
    }
    return found
  }

  /** The body of an answer that streams, as far as it has come. */
  bodyOf(invocation: number): string {
    return this.streamOf(OF_CALL, invocation).body
  }

  /** @param flags STREAM_FLAGS */
  streamData(owner: number, number: number, bytes: string, flags = 0, closing = ''): void {
    this.#run(ENTRIES.streamData, number, closing, owner | flags, bytes)
  }

  streamCredit(owner: number, number: number, bytes: number): void {
    this.#run(ENTRIES.streamCredit, number, '', owner + bytes * CREDIT_UNIT)
  }

  /** What came breaks off, or nobody takes what it sends. */
  streamAbort(owner: number, number: number, side: 'sent' | 'received', why = ''): void {
    this.#run(ENTRIES.streamAbort, number, why, owner | (side === 'received' ? STREAM_FLAGS.received : 0))
  }

  fetchHead(fetch: number, result: object): void {
    this.#run(ENTRIES.fetchHead, fetch, JSON.stringify(result))
  }

  socketConnected(socket: number, connected: object): void {
    this.#run(ENTRIES.socketConnected, socket, JSON.stringify(connected))
  }

  socketClosed(socket: number, end: object): void {
    this.#run(ENTRIES.socketClosed, socket, JSON.stringify(end))
  }

  settleFetch(fetch: number, result: object, kind: BodyKind = 'none', body = ''): void {
    this.#enter(ENTRIES.settleFetch, fetch, JSON.stringify(result), kind, body)
  }

  /** Lines of the log as `level: text`. */
  get lines(): string[] {
    return this.logs.map(({ level, text }) => `${level}: ${text}`)
  }

  #enter(op: number, number: number, text = '', kind: BodyKind = 'none', body = ''): void {
    this.#run(op, number, text, BODY_KINDS.indexOf(kind), body)
  }

  /** One entry, and its end, if the guest waits for that. */
  #run(op: number, number: number, text = '', kind = 0, body = ''): void {
    this.#call('dispatch', op, number, text, kind, body)
    while (this.#awaitsEnd) {
      this.#awaitsEnd = false
      this.#call('dispatch', ENTRIES.endEntry)
    }
  }

  #call(name: string, ...args: unknown[]): void {
    const reference = this.#entries.getSync(name, { reference: true })
    try {
      reference.applySync(undefined, args)
    } catch {
      // isolated-vm throws what was rejected and not handled; the host ignores it.
    }
  }

  #callbacks(): ivm.Callback[] {
    const methods: Omit<GuestBridge, (typeof NATIVES)[number]> = {
      say: (op, a, b, c, text, body) => this.#said(op, a, b, c, text, body as string),
      drain: () => {
        this.drainCalls++
        return this.pauseMs
      },
    }
    return NAMES.map((name) => new ivm.Callback(methods[name]))
  }

  #said(op: number, a: number, b: number, c: number, text: string, body: string): void {
    if (this.failsToSay(op, a, c)) throw new RangeError('no memory')
    switch (op) {
      case SAYS.loaded:
        this.loaded = JSON.parse(text) as Record<string, unknown>
        return
      case SAYS.answer:
        if (this.answers.has(a) || this.failures.has(a)) throw new Error('answered twice')
        this.answers.set(a, { ...(JSON.parse(text) as Pick<Answer, 'status' | 'headers'>), kind: BODY_KINDS[c]!, body })
        return
      case SAYS.fail:
        if (this.answers.has(a) || this.failures.has(a)) throw new Error('answered twice')
        this.failures.set(a, JSON.parse(text) as Failure)
        return
      case SAYS.canceled:
        this.canceled.push(a)
        return
      case SAYS.startTimer:
        this.timers.set(b, c)
        this.startedTimers.push(b)
        return
      case SAYS.stopTimer:
        this.timers.delete(a)
        this.stoppedTimers.push(a)
        return
      case SAYS.startFetch:
        this.fetches.set(b, { invocation: a, head: JSON.parse(text) as Fetch['head'], kind: BODY_KINDS[c]!, body })
        return
      case SAYS.stopFetch:
        this.stoppedFetches.push(a)
        return
      case SAYS.log:
        this.logs.push({ invocation: a, level: LOG_LEVELS[c]!, text })
        if (b === 1) this.rejections.push(text)
        this.onLog(text)
        return
      case SAYS.answerHead:
        if (this.heads.has(a) || this.answers.has(a) || this.failures.has(a)) throw new Error('answered twice')
        this.heads.set(a, JSON.parse(text) as Pick<Answer, 'status' | 'headers'>)
        return
      case SAYS.endAnswer:
        this.endedAnswers.push(a)
        return
      case SAYS.streamData: {
        const stream = this.streamOf(c & OWNER_MASK, a)
        if (stream.hasEnded || stream.broke !== undefined) throw new Error('sent behind the end')
        const kind = (c & STREAM_FLAGS.text) !== 0 ? 'text' : (c & STREAM_FLAGS.bytes) !== 0 ? 'bytes' : undefined
        if (kind === undefined) {
          stream.body += body
          if (body.length > 0) stream.parts.push(body.length)
        } else stream.messages.push({ kind, text: body, more: (c & STREAM_FLAGS.more) !== 0 })
        stream.hasEnded = (c & STREAM_FLAGS.end) !== 0
        stream.closing = text
        return
      }
      case SAYS.streamCredit:
        this.streamOf(c, a).credited += b
        return
      case SAYS.streamAbort:
        if ((c & STREAM_FLAGS.received) === 0) this.streamOf(c & OWNER_MASK, a).broke = text
        else this.streamOf(c & OWNER_MASK, a).stopped = text
        return
      case SAYS.joinStreams:
        this.joined.push({ from: [c % CREDIT_UNIT, a], to: [Math.floor(c / CREDIT_UNIT), b] })
        return
      case SAYS.openSocket:
        this.sockets.set(b, { invocation: a, target: JSON.parse(text) })
        return
      case SAYS.startTls:
        this.startedTls.push({ socket: a, options: JSON.parse(text) })
        return
      case SAYS.stopSocket:
        this.stoppedSockets.push(a)
        return
      case SAYS.awaitEnd:
        this.#awaitsEnd = true
        return
      default:
        throw new Error(`The guest says ${op}.`)
    }
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
