import { once, EventEmitter } from 'node:events'
import { resolveLimits, type FunctionLimits } from '@carpool/core'
import { bundleRuntime } from '@carpool/runtime'
import { BodyParts, BodyTurns, NO_BODY, unpackUsage, type StreamOwner, type ToServer } from '@carpool/wire'
import t from 'tap'
import { Host } from '../../src/host.ts'
import '../../../test/support/own-exit.ts'

/** A message that the host sent. */
export interface Sent {
  readonly message: ToServer
  readonly text: string
  readonly body: string
  readonly bytes: Uint8Array
  /** On the monotonic clock, in ms. */
  readonly atMs: number
}

/** How an invocation ended. */
interface End extends Sent {
  readonly message: Extract<ToServer, { readonly type: 'answer' | 'answer-end' | 'failed' }>
}

/** A host in this process, and what it sends. */
export class InProcessHost {
  readonly sent: Sent[] = []
  readonly host: Host
  /**
   * By invocation. To search all messages for each end would hold up the event loop, until the host takes its server for gone.
   */
  readonly #ends = new Map<number, End>()
  readonly #parts = new BodyParts(Number.POSITIVE_INFINITY)
  /** Many may wait at once. */
  readonly #events = new EventEmitter().setMaxListeners(0)
  #last = 0

  constructor(runtime: string) {
    this.host = new Host({
      setup: {
        type: 'setup',
        prewarm: 0,
        maxIsolates: 100,
        maxBodyBytes: 8 * 1024 * 1024,
        enteredIsolates: 2,
        entrySliceMs: 10,
        longEntries: 2,
        memoryBudgetBytes: 0,
        guestClock: 'frozen',
        webAssembly: false,
      },
      runtime,
      send: (message, text = '', body = NO_BODY) => {
        const bytes = typeof body === 'number' ? this.#parts.take(body) : Buffer.from(body)
        const sent = { message, text, body: bytes.toString(), bytes, atMs: performance.now() }
        this.sent.push(sent)
        if (isEnd(sent)) this.#ends.set(sent.message.invocation, sent)
        this.#events.emit('sent')
      },
      bodies: new BodyTurns({
        backlogBytes: () => 0,
        sendPart: (number, totalBytes, part) => this.#parts.add(number, totalBytes, part),
      }),
      backlogBytes: () => 0,
      onProblem: (problem) => t.comment(problem),
      onCatastrophe: (reason) => t.fail(reason),
    })
  }

  /** Gives it a function, whose handler is this function body with `request` and `carpoolSupport_`. */
  load(revision: string, handler: string, limits: Partial<FunctionLimits> = {}): void {
    const source = `((carpoolSupport_) => { let calls = 0; return { default: { async fetch(request) { ${handler} } } } })`
    const functionName = revision
    const message = { type: 'load', revision, functionName, owner: 'o', limits: resolveLimits(limits), env: {} } as const
    this.host.receive(message, source, NO_BODY)
  }

  /** @returns the number of the invocation */
  invoke(revision: string, path = '/', body = '', streams = false): number {
    const invocation = ++this.#last
    const head = JSON.stringify({
      invocationId: `id-${invocation}`,
      method: body === '' && !streams ? 'GET' : 'POST',
      url: `http://localhost${path}`,
      headers: [],
      clientIp: '127.0.0.1',
    })
    const message = { type: 'invoke', invocation, id: `id-${invocation}`, revision, ...(streams && { streams }) } as const
    this.host.receive(message, head, Buffer.from(body))
    return invocation
  }

  /** The server sends a part of a stream. */
  stream(of: StreamOwner, number: number, body: string, end = false): void {
    this.host.receive({ type: 'stream-data', of, number, ...(end && { end }) }, '', Buffer.from(body, 'latin1'))
  }

  credit(of: StreamOwner, number: number, bytes: number): void {
    this.host.receive({ type: 'stream-credit', of, number, bytes }, '', NO_BODY)
  }

  /** Bytes have gone from one stream to another past the host. */
  moved(of: StreamOwner, number: number, bytes: number): void {
    this.host.receive({ type: 'stream-moved', of, number, bytes }, '', NO_BODY)
  }

  cancel(invocation: number): void {
    this.host.receive({ type: 'cancel', invocation }, '', NO_BODY)
  }

  /** What the host has sent of a stream, in order. */
  partsOf(of: StreamOwner, number: number): Sent[] {
    return this.sent.filter(({ message }) => message.type === 'stream-data' && message.of === of && message.number === number)
  }

  bytesOf(of: StreamOwner, number: number): number {
    return this.partsOf(of, number).reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  /** How many bytes that came by a stream were credited. */
  creditedOf(of: StreamOwner, number: number): number {
    let sum = 0
    for (const { message } of this.sent) {
      if (message.type === 'stream-credit' && message.of === of && message.number === number) sum += message.bytes
    }
    return sum
  }

  /** Resolves when something more was sent. */
  async #sentMore(): Promise<void> {
    // A host keeps no process alive while it waits for a limit.
    const alive = setInterval(() => {}, 1_000)
    await once(this.#events, 'sent')
    clearInterval(alive)
  }

  /** Resolves once something is so, which is looked at when anything is sent. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.#sentMore()
  }

  /** Tells each message as it is sent. */
  onSent(listener: (sent: Sent) => void): void {
    this.#events.on('sent', () => listener(this.sent.at(-1)!))
  }

  /** The next message of a type. */
  async sentOf(type: ToServer['type']): Promise<Sent> {
    for (let next = this.sent.length; ; next++) {
      if (next === this.sent.length) await this.#sentMore()
      if (this.sent[next]?.message.type === type) return this.sent[next]!
    }
  }

  /** How an invocation ended, once it has. */
  async endOf(invocation: number): Promise<End> {
    await this.until(() => this.#ends.has(invocation))
    return this.#ends.get(invocation)!
  }

  /** The body of an answer. */
  async answerOf(invocation: number): Promise<string> {
    const { message, body } = await this.endOf(invocation)
    return message.type === 'answer' ? body : JSON.stringify(message)
  }

  async cpuUsOf(invocation: number): Promise<number> {
    const { message } = await this.endOf(invocation)
    return unpackUsage((message as unknown as { usage: unknown }).usage).cpuUs
  }

  /** Calls so often that many short entries share a batch from then on. */
  async warmUp(revision: string, path = '/'): Promise<void> {
    for (const count of [1, 2, 4, 8, 16, 32]) {
      await Promise.all(Array.from({ length: count }, () => this.endOf(this.invoke(revision, path))))
    }
  }
}

function isEnd(sent: Sent): sent is End {
  const { type } = sent.message
  return type === 'answer' || type === 'answer-end' || type === 'failed'
}

let runtime: Promise<string> | undefined

export async function inProcessHost(): Promise<InProcessHost> {
  return new InProcessHost(await (runtime ??= bundleRuntime()))
}
