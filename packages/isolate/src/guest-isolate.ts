import ivm from 'isolated-vm'
import { entryClock } from './entry-clock.ts'

/** What may cross the boundary: primitives only. */
export type Primitive = string | number | boolean | undefined

/** A function that the guest may call. It must not throw: the host's stack would be copied into the guest. */
export interface GuestCallback {
  readonly call: (...args: never[]) => Primitive
  /** The guest's thread blocks until the host has answered; else the guest goes on at once and gets nothing back. */
  readonly blocking: boolean
}

export interface GuestIsolateOptions {
  /** Script that evaluates to `boot(names, ...callbacks)`, which returns an object of entry functions. */
  readonly bootstrap: Bootstrap
  /** Names of the entry functions that `boot` returns. */
  readonly entryNames: readonly string[]
  readonly callbacks: Readonly<Record<string, GuestCallback>>
  /** Heap limit, in MiB. A guideline: V8 may use two or three times as much before it ends the isolate. */
  readonly memoryLimitMb: number
  /** V8 gave up on the isolate and parked its thread: the process must be replaced. */
  readonly onCatastrophe: (reason: string) => void
}

/** Does a task that enters an isolate once, and measures it. */
export type Measured = <T>(task: () => Promise<T>) => Promise<T>

export interface CpuReading {
  readonly ns: number
  /** False while the isolate is entered: the reading then counts time instead of CPU since it was. */
  readonly isExact: boolean
}

/** How long a new isolate may take to come to rest, and how often to look, in ms. */
const REST_MS = 100
const REST_CHECK_MS = 1

/** The bootstrap script with its code cache, which the first isolate makes and the later ones use. */
export class Bootstrap {
  readonly source: string
  codeCache: ivm.ExternalCopy<ArrayBuffer> | undefined

  constructor(source: string) {
    this.source = source
  }
}

/** Code of a function: a script that evaluates to a factory, which runs the module scope and returns the exports. */
export interface GuestCode {
  readonly source: string
  /** Shown in stacks. */
  readonly filename: string
  /** Made by {@link compileToCache} with the same version of V8; ignored if V8 rejects it. */
  readonly codeCache?: Uint8Array
}

/**
 * One V8 isolate with one context. Code in it runs on a thread of isolated-vm, never on the caller's event loop. Only primitives cross the
 * boundary, and nothing that the guest made is ever called, read or awaited by the host.
 */
export class GuestIsolate {
  readonly #isolate: ivm.Isolate
  readonly #context: ivm.Context
  readonly #entries: ReadonlyMap<string, ivm.Reference>
  /** Its slot in the entry clock. */
  readonly #slot: number | undefined
  #restedCpuNs = 0
  #isReleased = false
  #isConfined = false

  private constructor(
    isolate: ivm.Isolate,
    context: ivm.Context,
    entries: ReadonlyMap<string, ivm.Reference>,
    slot: number | undefined,
  ) {
    this.#isolate = isolate
    this.#context = context
    this.#entries = entries
    this.#slot = slot
  }

  static async create(options: GuestIsolateOptions): Promise<GuestIsolate> {
    const isolate = new ivm.Isolate({ memoryLimit: options.memoryLimitMb, onCatastrophicError: options.onCatastrophe })
    try {
      return await GuestIsolate.#boot(isolate, options)
    } catch (cause) {
      if (!isolate.isDisposed) isolate.dispose()
      throw cause
    }
  }

  static async #boot(isolate: ivm.Isolate, options: GuestIsolateOptions): Promise<GuestIsolate> {
    const context = await isolate.createContext()
    const script = await compileBootstrap(isolate, options.bootstrap)
    const boot: ivm.Reference<(...args: unknown[]) => object> = await script.run(context, { reference: true })
    const names = Object.keys(options.callbacks)
    const callbacks = Object.values(options.callbacks).map(({ call, blocking }) =>
      blocking ? new ivm.Callback(call, { sync: true }) : new ivm.Callback(call, { ignored: true }),
    )
    const clock = await entryClock?.module.create(context)
    const slot = (await clock?.get('slot')) as number | undefined
    const ticks =
      slot === undefined || clock === undefined ? [] : [await functionOf(clock, 'begin'), await functionOf(clock, 'end')]
    if (ticks.length > 0) names.push('begin', 'end')
    const booted: ivm.Reference = await boot.apply(undefined, [names.join(','), ...callbacks, ...ticks], {
      result: { reference: true },
    })
    const entries = await Promise.all(
      options.entryNames.map(async (name) => [name, await booted.get(name, { reference: true })] as const),
    )
    for (const handle of [script, boot, booted]) handle.release()
    clock?.release()
    const made = new GuestIsolate(isolate, context, new Map(entries), slot)
    await made.atRest(REST_MS)
    return made
  }

  /** Whether the isolate is gone: disposed by us, or by V8 for passing its memory limit. */
  get disposed(): boolean {
    return this.#isolate.isDisposed
  }

  /** CPU time of the isolate's thread since the isolate was made. */
  get cpu(): CpuReading {
    try {
      const first = this.#isolate.cpuTime
      const second = this.#isolate.cpuTime
      // While the isolate is entered, isolated-vm adds the time of day that passed since, so two readings differ.
      const isExact = first === second
      if (isExact) this.#restedCpuNs = Number(second)
      return { ns: Number(second), isExact }
    } catch {
      // It is gone, which V8 can bring about at any moment.
      return { ns: this.#restedCpuNs, isExact: true }
    }
  }

  /** Whether entries are measured by a CPU clock: then the entry `spans` gives what each took, and {@link spans} what it has taken so far. */
  get hasEntryClock(): boolean {
    return this.#slot !== undefined
  }

  /** A stay is about to begin: {@link spans} are those of its entries from here on. */
  forgetSpans(): void {
    if (this.#slot !== undefined) entryClock?.addon.forget(this.#slot)
  }

  /** CPU time of the entries of the stay that is under way, in ns; the last one runs. Empty if none has begun, or there is no such clock. */
  get spans(): readonly number[] {
    return this.#slot === undefined ? [] : (entryClock?.addon.spans(this.#slot) ?? [])
  }

  /**
   * Has what runs in the isolate sleep, from its next step on until {@link resume} or {@link dispose}; what enters it meanwhile sleeps as well. A built-in
   * that runs for long goes on until it returns. @returns false if that cannot be done, as without a clock of entries
   */
  hold(): boolean {
    if (this.#slot === undefined || this.#isReleased) return false
    return entryClock?.addon.hold(this.#slot) ?? false
  }

  /** What was held goes on. Harmless if nothing was. */
  resume(): void {
    if (this.#slot !== undefined && !this.#isReleased) entryClock?.addon.resume(this.#slot)
  }

  /**
   * Keeps the thread that runs in the isolate to a quarter of the cores, at least one, until {@link unconfine}: for what cannot be held, also if the isolate
   * was disposed. Without effect on a machine with one core, or without a clock of entries.
   */
  confine(): void {
    if (this.#slot !== undefined && !this.#isConfined) this.#isConfined = entryClock?.addon.confine(this.#slot) ?? false
  }

  /** To be called when nothing runs in it any more: the thread goes on with others. */
  unconfine(): void {
    if (!this.#isConfined || this.#slot === undefined) return
    this.#isConfined = false
    entryClock?.addon.unconfine(this.#slot)
  }

  /** A reading once the isolate's thread has left it, which under load may need a core first; after `waitMs` one that is not exact. */
  async atRest(waitMs: number): Promise<CpuReading> {
    const fromMs = performance.now()
    let reading = this.cpu
    while (!reading.isExact && performance.now() - fromMs < waitMs) {
      await new Promise((resolve) => setTimeout(resolve, REST_CHECK_MS))
      reading = this.cpu
    }
    return reading
  }

  /** CPU time as of the last exact reading, in ns. */
  get restedCpuNs(): number {
    return this.#restedCpuNs
  }

  /** Queues one entry: a call of an entry function. Entries run in order; what one throws is lost. */
  enter(entry: string, args: readonly Primitive[]): void {
    if (!this.#isolate.isDisposed) this.#entry(entry).applyIgnored(undefined, args as never[])
  }

  /**
   * Queues one entry. Resolves with what it returned once it has run with its microtasks, and so have all entries before it.
   * @throws Error if it throws, or the isolate is gone or ended meanwhile
   */
  async run(entry: string, args: readonly Primitive[]): Promise<Primitive> {
    return (await this.#entry(entry).apply(undefined, args as never[])) as Primitive
  }

  /**
   * What the heap holds now, with what it keeps outside, in bytes. It enters the isolate, behind the entries that wait.
   * @throws Error if the isolate is gone or ended meanwhile
   */
  async heapBytes(): Promise<number> {
    const { used_heap_size, externally_allocated_size } = await this.#isolate.getHeapStatistics()
    return used_heap_size + externally_allocated_size
  }

  /**
   * Compiles code and runs an entry with `argument` and the code's factory. Resolves once the entry has run.
   * @param measured what each of the steps, which enter the isolate one after the other, is done in
   * @throws Error if the code does not compile; its message names the position
   */
  async enterCode(entry: string, argument: string, code: GuestCode, measured: Measured = (task) => task()): Promise<void> {
    const script = await measured(() => compile(this.#isolate, code))
    const factory = await measured(() => script.run(this.#context, { reference: true }))
    script.release()
    await measured(() => this.#entry(entry).apply(undefined, [argument, factory.derefInto({ release: true })]))
  }

  /** Ends the isolate now, also in the middle of an entry. Harmless if it is gone. */
  dispose(): void {
    if (!this.#isolate.isDisposed) this.#isolate.dispose()
    // Only now: what sleeps in it wakes up to its end.
    this.resume()
    this.#releaseSlot()
  }

  #releaseSlot(): void {
    if (this.#slot === undefined || this.#isReleased) return
    this.#isReleased = true
    entryClock?.addon.release(this.#slot)
  }

  #entry(name: string): ivm.Reference {
    const entry = this.#entries.get(name)
    if (entry === undefined) throw new Error(`The guest has no entry ${name}.`)
    return entry
  }
}

/** Compiles code, without running any of it, and returns V8's code cache; undefined if it does not compile. */
export async function compileToCache(code: GuestCode, memoryLimitMb: number): Promise<Uint8Array | undefined> {
  const isolate = new ivm.Isolate({ memoryLimit: memoryLimitMb })
  try {
    const script = await isolate.compileScript(code.source, { filename: code.filename, produceCachedData: true })
    const cache = (script as ivm.Script & ivm.CachedDataResult).cachedData
    return cache === undefined ? undefined : new Uint8Array(cache.copy())
  } catch {
    return undefined
  } finally {
    if (!isolate.isDisposed) isolate.dispose()
  }
}

async function functionOf(target: ivm.Reference, name: string): Promise<ivm.Dereference<unknown>> {
  const reference: ivm.Reference = await target.get(name, { reference: true })
  return reference.derefInto({ release: true })
}

async function compileBootstrap(isolate: ivm.Isolate, bootstrap: Bootstrap): Promise<ivm.Script> {
  const origin = { filename: 'carpool:runtime' }
  if (bootstrap.codeCache !== undefined) {
    return isolate.compileScript(bootstrap.source, { ...origin, cachedData: bootstrap.codeCache })
  }
  const script = await isolate.compileScript(bootstrap.source, { ...origin, produceCachedData: true })
  bootstrap.codeCache = (script as ivm.Script & ivm.CachedDataResult).cachedData
  return script
}

async function compile(isolate: ivm.Isolate, { source, filename, codeCache }: GuestCode): Promise<ivm.Script> {
  if (codeCache === undefined) return isolate.compileScript(source, { filename })
  const copied = codeCache.slice().buffer
  return isolate.compileScript(source, { filename, cachedData: new ivm.ExternalCopy(copied) })
}
