import { splitScripts } from '@carpool/runtime/bridge'
import ivm from 'isolated-vm'
import { addon, BATCH_DONE, entryCpuNs, GAVE_UP, GONE, GROWN, MESSAGE, nativeModule, OVER, PEAK_BYTES } from '../addon.ts'

/**
 * A function that the guest may call, and for whose answer its thread blocks; the event loop may do other things before. It
 * must not throw: the host's stack would be copied into the guest.
 */
export type GuestCallback = (...args: never[]) => number | undefined

/** A message of the guest: an operation, with numbers and texts. The second may be bytes. */
export type OnMessage = (op: number, a: number, b: number, c: number, text: string, body: string | Uint8Array) => void

export interface GuestIsolateOptions {
  /**
   * Script that evaluates to `boot(names, ...functions)`, which returns three functions: `load(argument, factory)`,
   * `dispatch(op, number, text, kind, body)`, which is called for each entry of a batch, and now and then with the operation 0
   * alone, to do nothing, and `rejected(isHandled, promise, reason)`, which hears of promises. It is given the
   * callbacks, and what the addon has of GuestBridge in packages/runtime/src/bridge.ts.
   */
  readonly bootstrap: Bootstrap
  readonly callbacks: Readonly<Record<string, GuestCallback>>
  /** Heap limit, in MiB. A guideline: V8 may use two or three times as much before it ends the isolate. */
  readonly memoryLimitMb: number
  /** Gives the garbage of its making back to the system: half a megabyte, for 4 ms of CPU. */
  readonly isTrimmed?: boolean
  /** V8 gave up on the isolate and parked its thread: the process must be replaced. */
  readonly onCatastrophe: (reason: string) => void
}

/** Called on the host's loop. */
export interface IsolateListener {
  /** Everything that went in has run, or the isolate is gone: once for each {@link GuestIsolate.enter}. */
  batchDone(): void
  /** There are messages from outside of a batch, as while the guest was loaded, or the isolate is gone while no batch ran. */
  messagesWait(): void
  /** The isolate has taken much memory, and may be about to write to it. */
  grown(): void
}

/** Does a task that enters an isolate once, and measures it. */
export type Measured = <T>(task: () => Promise<T>) => Promise<T>

const NO_ARGUMENTS: never[] = []
const NO_LISTENER: IsolateListener = { batchDone: () => {}, messagesWait: () => {}, grown: () => {} }

/**
 * The bootstrap script and its libraries. The addon keeps them once for all isolates, with the code caches that the first isolate
 * makes and the later ones use.
 */
export class Bootstrap {
  /** In the addon. */
  readonly index: number

  /** @param text a script, or several as `joinScripts` gives them */
  constructor(text: string) {
    const indexes = splitScripts(text).map((source, part) =>
      addon.addScript(`carpool:runtime${part === 0 ? '' : `/${part}`}`, source),
    )
    const [index] = indexes
    if (index === undefined || indexes.includes(undefined)) throw new Error('The scripts of the runtime cannot be kept.')
    this.index = index
  }
}

/** Code of a function: a script that evaluates to a factory, which runs the module scope and returns the exports. */
export interface GuestCode {
  readonly source: string
  /** Shown in stacks. */
  readonly filename: string
  readonly codeCache?: CodeCache
}

/**
 * V8's code cache of a function, as {@link GuestIsolate.makeCodeCache} makes it: outside of all heaps, and once for all
 * isolates.
 */
export class CodeCache {
  readonly copy: ivm.ExternalCopy<ArrayBuffer>

  constructor(bytes: Uint8Array) {
    // A copy, which a Buffer's own `slice` is not: what it is a view of stays whose it is.
    this.copy = new ivm.ExternalCopy(new Uint8Array(bytes).buffer, { transferOut: true })
  }
}

/**
 * One V8 isolate with one context. Code in it runs on a thread of isolated-vm, never on the caller's event loop. Only
 * primitives cross the boundary, and nothing that the guest made is ever called, read or awaited by the host.
 */
export class GuestIsolate {
  /** By their indexes in the addon, until they are gone. */
  static readonly #byIndex = new Map<number, GuestIsolate>()
  readonly #isolate: ivm.Isolate
  readonly #context: ivm.Context
  readonly #booted: Booted
  readonly #onCatastrophe: GuestIsolateOptions['onCatastrophe']
  readonly #index: number
  /** What it took to make it, in ns: by the clock of isolated-vm, which is time of day, and that of its thread for the trim. */
  #bootNs: number
  #listener = NO_LISTENER
  #isEntered = false
  /** What is in it by other means than {@link enter}. */
  #visits = 0
  #isGone = false
  /** What {@link takeBetweenNs} has to give once it is released. */
  #lastBetweenNs = 0
  #isReleased = false
  #hasAffinity = false
  #hasLongTurns = false

  private constructor(
    isolate: ivm.Isolate,
    context: ivm.Context,
    booted: Booted,
    onCatastrophe: GuestIsolateOptions['onCatastrophe'],
  ) {
    this.#onCatastrophe = onCatastrophe
    this.#isolate = isolate
    this.#context = context
    this.#booted = booted
    this.#index = booted.index
    this.#bootNs = Number(isolate.cpuTime)
    GuestIsolate.#byIndex.set(booted.index, this)
  }

  static async create(options: GuestIsolateOptions): Promise<GuestIsolate> {
    const isolate = new ivm.Isolate({ memoryLimit: options.memoryLimitMb, onCatastrophicError: options.onCatastrophe })
    try {
      const context = await isolate.createContext()
      const made = new GuestIsolate(isolate, context, await bootIn(context, options), options.onCatastrophe)
      if (options.isTrimmed === true) await made.#trim()
      return made
    } catch (cause) {
      if (!isolate.isDisposed) isolate.dispose()
      throw cause
    }
  }

  get bootNs(): number {
    return this.#bootNs
  }

  async #trim(): Promise<void> {
    await this.measure(() => this.collectGarbage())
    if (this.readEntryCpu() > 0) this.#bootNs += this.entryCpuNs[0] ?? 0
  }

  listen(listener: IsolateListener): void {
    this.#listener = listener
  }

  static {
    addon.listen((events) => {
      for (let index = 0; index < events.length; index += 2) {
        const [isolateIndex, bits] = [events[index]!, events[index + 1]!]
        const isolate = GuestIsolate.#byIndex.get(isolateIndex)
        if (isolate !== undefined) isolate.#onEvents(bits)
        // It was lost while it was made.
        else if ((bits & GONE) !== 0) addon.release(isolateIndex)
      }
    })
  }

  #onEvents(events: number): void {
    this.#isGone ||= (events & GONE) !== 0
    if ((events & OVER) !== 0) this.dispose()
    if ((events & GROWN) !== 0) this.#listener.grown()
    if ((events & GAVE_UP) !== 0) this.#onCatastrophe('There is no memory for what it does outside of its heap.')
    if ((events & (BATCH_DONE | GONE)) !== 0 && this.#isEntered) {
      this.#isGone ||= this.#isolate.isDisposed
      this.#isEntered = false
      this.#listener.batchDone()
    } else if ((events & (MESSAGE | GONE)) !== 0) this.#listener.messagesWait()
    if ((events & GONE) !== 0) this.#release()
  }

  /** Others may get its index from now on. */
  #release(): void {
    this.#lastBetweenNs = addon.takeBetween(this.#index)
    this.#isReleased = true
    GuestIsolate.#byIndex.delete(this.#index)
    addon.release(this.#index)
  }

  /** Whether nothing is left of it: it is disposed, and its thread has taken it down. */
  get isReleased(): boolean {
    return this.#isReleased
  }

  /** Whether the isolate is gone: disposed by us, or by V8 for passing its memory limit. */
  get disposed(): boolean {
    // To ask isolated-vm takes longer than most of what is done for a call, and V8 ends an isolate only while something is in it.
    // If it is ended just after that, an event tells of it, and until then nothing comes of what goes in.
    if (!this.#isGone && (this.#isEntered || this.#visits > 0)) this.#isGone = this.#isolate.isDisposed
    return this.#isGone
  }

  async #visit<T>(task: () => Promise<T>): Promise<T> {
    this.#visits++
    try {
      return await task()
    } finally {
      this.#isGone ||= this.#isolate.isDisposed
      this.#visits--
    }
  }

  /** Makes {@link readEntryCpu} begin anew, as {@link enter} does. To be called before what is to be measured as one entry. */
  resetEntryCpu(): void {
    if (!this.#isReleased) addon.resetEntryCpu(this.#index)
  }

  /**
   * Reads the CPU times of the entries of the batch that runs, of which the last one is under way, or of the one that ran last.
   * @returns how many have begun; their CPU times, in ns, are in {@link entryCpuNs}
   */
  readEntryCpu(): number {
    return this.#isReleased ? 0 : addon.readEntryCpu(this.#index)
  }

  /**
   * CPU time of what V8 did on its own between batches, since the last call, in ns: it collects garbage there. What is less than
   * 0.2 ms at a time is the next entry's, if the thread goes on with the same isolate.
   */
  takeBetweenNs(): number {
    if (!this.#isReleased) return addon.takeBetween(this.#index)
    const ns = this.#lastBetweenNs
    this.#lastBetweenNs = 0
    return ns
  }

  /** Overwritten whenever the CPU times of any isolate are read. */
  get entryCpuNs(): Float64Array {
    return entryCpuNs
  }

  /** Most memory that it ever held, in bytes, as of the last {@link readEntryCpu}, if no other isolate's were read since. */
  get peakBytes(): number {
    return entryCpuNs[PEAK_BYTES]!
  }

  /** What it holds, in bytes; while an entry runs, with all that it took since the last look, garbage too. */
  get heldBytes(): number {
    return this.#isReleased ? 0 : addon.heldBytes(this.#index)
  }

  /**
   * Has what runs in the isolate sleep, from its next step on until {@link resume} or {@link dispose}; what enters it
   * meanwhile sleeps as well. A built-in that runs for long goes on until it returns. @returns false if that cannot be done
   */
  suspend(): boolean {
    return !this.#isGone && addon.suspend(this.#index)
  }

  /** Ends {@link suspend}. Harmless if it is not suspended. */
  resume(): void {
    if (!this.#isReleased) addon.resume(this.#index)
  }

  /**
   * Limits the thread that runs in the isolate to a quarter of the cores, at least one, until {@link clearAffinity}: for what
   * cannot be suspended, also if the isolate was disposed. Without effect on a machine with one core.
   */
  setAffinity(): void {
    if (!this.#hasAffinity && !this.#isReleased) this.#hasAffinity = addon.setAffinity(this.#index)
  }

  /** To be called when nothing runs in it any more: the thread goes on with others. */
  clearAffinity(): void {
    if (!this.#hasAffinity) return
    this.#hasAffinity = false
    if (!this.#isReleased) addon.clearAffinity(this.#index)
  }

  /**
   * Has the thread that runs in the isolate take long turns at its core, until {@link resetTurns}: whatever wakes up meanwhile
   * runs at once, and not at the system's next tick. It gets no less CPU time for that.
   */
  lengthenTurns(): void {
    if (!this.#hasLongTurns && !this.#isReleased) this.#hasLongTurns = addon.lengthenTurns(this.#index)
  }

  /** To be called when nothing runs in it any more. */
  resetTurns(): void {
    if (!this.#hasLongTurns) return
    this.#hasLongTurns = false
    if (!this.#isReleased) addon.resetTurns(this.#index)
  }

  /** Adds an entry to the next batch. */
  push(op: number, number: number, text = '', kind = 0, body = ''): void {
    if (!this.#isReleased) addon.push(this.#index, op, number, text, kind, body)
  }

  /**
   * Has what was pushed run, one after the other, each with its microtasks; what an entry throws is lost. Nothing that went in
   * before may be under way. Calls `batchDone` when all have run. Without effect if the isolate is gone.
   */
  enter(): void {
    if (this.#isReleased) return
    this.#isEntered = true
    addon.enter(this.#index)
    this.#booted.run.applyIgnored(undefined, NO_ARGUMENTS)
  }

  /**
   * Passes on the messages of the guest since the last read, in order; also in the middle of a batch, or when the isolate is
   * gone.
   */
  readMessages(onMessage: OnMessage): void {
    const parts = this.#isReleased ? undefined : (addon.readOutbox(this.#index) as readonly never[] | undefined)
    if (parts === undefined) return
    for (let index = 0; index < parts.length; index += 6) {
      onMessage(parts[index]!, parts[index + 1]!, parts[index + 2]!, parts[index + 3]!, parts[index + 4]!, parts[index + 5]!)
    }
  }

  /**
   * What the heap holds now, with what it keeps outside, in bytes. It enters the isolate, behind the entries that wait.
   * @throws Error if the isolate is gone or ended meanwhile
   */
  async heapBytes(): Promise<number> {
    const { used_heap_size, externally_allocated_size } = await this.#visit(() => this.#isolate.getHeapStatistics())
    return used_heap_size + externally_allocated_size
  }

  /**
   * Collects garbage, and gives back to the system what that frees. It enters the isolate, behind the entries that wait.
   * @throws Error if the isolate is gone or ended meanwhile
   */
  async collectGarbage(): Promise<void> {
    await this.#visit(() => this.#booted.trim.apply(undefined, NO_ARGUMENTS))
  }

  /**
   * Compiles code and runs the function `load` with `argument` and the code's factory. Resolves once that has run.
   * @param measured what each of the steps, which enter the isolate one after the other, is done in
   * @returns whether V8 took its code cache
   * @throws Error if the code does not compile; its message names the position
   */
  async load(argument: string, code: GuestCode, measured: Measured = (task) => task()): Promise<boolean> {
    return this.#visit(async () => {
      const script = await measured(() => compile(this.#isolate, code))
      const factory = await measured(() => script.run(this.#context, { reference: true }))
      script.release()
      await measured(() => this.#booted.load.apply(undefined, [argument, factory.derefInto({ release: true })]))
      return script.cachedDataRejected === false
    })
  }

  /**
   * V8's code cache of code that was loaded, with what has run of it: V8 gives whoever compiles the same again the script that it
   * has. The bytes come from V8 by way of isolated-vm: the guest has no hand in it but that it runs its functions.
   */
  async makeCodeCache({ source, filename }: GuestCode): Promise<Uint8Array | undefined> {
    const script: CompiledScript = await this.#visit(() =>
      this.#isolate.compileScript(source, { filename, produceCachedData: true }),
    )
    script.release()
    return script.cachedData === undefined ? undefined : new Uint8Array(script.cachedData.copy())
  }

  /**
   * Does a task that enters the isolate once. All that were measured since {@link resetEntryCpu} are one entry, whose CPU time
   * {@link readEntryCpu} gives.
   * @throws Error if the isolate is gone
   */
  async measure<T>(task: () => Promise<T>): Promise<T> {
    if (this.#isReleased) throw new Error('The isolate is gone.')
    // Its thread waits at `begin` until all three have gone in, or it could leave in between, and another thread go on.
    addon.holdBegin(this.#index)
    this.#booted.begin.applyIgnored(undefined, NO_ARGUMENTS)
    const all = Promise.allSettled([(async () => task())(), this.#booted.end.apply(undefined, NO_ARGUMENTS)])
    addon.releaseBegin(this.#index)
    const [done] = await all
    if (done.status === 'rejected') throw done.reason
    return done.value
  }

  /** Ends the isolate now, also in the middle of an entry. Harmless if it is gone. */
  dispose(): void {
    if (!this.#isReleased) addon.close(this.#index)
    try {
      if (!this.#isolate.isDisposed) {
        // Who lets go of an isolate last takes it down, which may take milliseconds. So that this is not the event loop, a thread
        // is sent in, and sleeps there until it is let go of.
        if (this.suspend()) this.#booted.run.applyIgnored(undefined, NO_ARGUMENTS)
        this.#isolate.dispose()
      }
    } catch {
      // V8 has ended it meanwhile.
    }
    this.#isGone = true
    // Only now: what sleeps in it wakes up to its end.
    this.resume()
  }
}

/** What there is of the guest in a new isolate. */
interface Booted {
  /** In the addon. */
  readonly index: number
  readonly load: ivm.Reference
  readonly run: ivm.Reference
  readonly begin: ivm.Reference
  readonly end: ivm.Reference
  readonly trim: ivm.Reference
}

async function bootIn(context: ivm.Context, options: GuestIsolateOptions): Promise<Booted> {
  const callbacks = Object.values(options.callbacks).map((callback) => new ivm.Callback(callback, { sync: true }))
  const names = [...Object.keys(options.callbacks), 'say', 'library', 'random'].join(',')
  const native = await nativeModule.create(context)
  const [index, boot, begin, end, say, library, random, connect, trim] = await Promise.all([
    native.get('index') as Promise<number | undefined>,
    referenceOf(native, 'boot'),
    referenceOf(native, 'begin'),
    referenceOf(native, 'end'),
    referenceOf(native, 'say'),
    referenceOf(native, 'library'),
    referenceOf(native, 'random'),
    referenceOf(native, 'connect'),
    referenceOf(native, 'trim'),
  ])
  if (index === undefined) throw new Error('There are too many isolates for the addon.')
  const given = [...callbacks, ...[say, library, random].map((one) => one.derefInto({ release: true }))]
  const booted: ivm.Reference = await boot.apply(undefined, [options.bootstrap.index, names, ...given], {
    result: { reference: true },
  })
  const [load, dispatch, rejected] = await Promise.all([
    referenceOf(booted, 'load'),
    referenceOf(booted, 'dispatch'),
    referenceOf(booted, 'rejected'),
  ])
  const functions = [dispatch.derefInto({ release: true }), rejected.derefInto({ release: true })]
  const run: ivm.Reference = await connect.apply(undefined, functions, { result: { reference: true } })
  for (const handle of [boot, booted, native, connect]) handle.release()
  return { index, load, run, begin, end, trim }
}

function referenceOf(target: ivm.Reference, name: string): Promise<ivm.Reference> {
  return target.get(name, { reference: true })
}

/** With what isolated-vm says of code caches, of which its types know one half. */
type CompiledScript = ivm.Script & { readonly cachedData?: ivm.ExternalCopy<ArrayBuffer>; readonly cachedDataRejected?: boolean }

function compile(isolate: ivm.Isolate, { source, filename, codeCache }: GuestCode): Promise<CompiledScript> {
  return isolate.compileScript(source, { filename, ...(codeCache !== undefined && { cachedData: codeCache.copy }) })
}
