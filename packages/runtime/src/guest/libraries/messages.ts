/** MessageChannel: messages between parts of one isolate, as copies, each in a turn of its own. */
import { toText } from '../language/values.ts'
import { setTimeout } from '../web-api/host.ts'
import { DOMException } from '../web-api/dom-exception.ts'
import { Event, type EventInit, EventTarget } from '../web-api/events.ts'
import { cloneMessage, type ClonedMessage } from '../web-api/structured-clone.ts'
import { asInterfaces } from './interfaces.ts'

interface MessageEventInit extends EventInit {
  data?: unknown
  origin?: unknown
  lastEventId?: unknown
  source?: unknown
  ports?: Iterable<unknown>
}

export class MessageEvent extends Event {
  #data: unknown
  #origin: string
  #lastEventId: string
  #source: unknown
  #ports: readonly unknown[]

  constructor(type: unknown, init?: MessageEventInit | null) {
    if (arguments.length === 0) throw new TypeError('An event needs a type.')
    super(type, init)
    this.#data = init?.data === undefined ? null : init.data
    this.#origin = init?.origin === undefined ? '' : toText(init.origin).toWellFormed()
    this.#lastEventId = init?.lastEventId === undefined ? '' : toText(init.lastEventId)
    this.#source = sourceOf(init?.source)
    this.#ports = portsOf(init?.ports)
  }

  get data(): unknown {
    return this.#data
  }

  get origin(): string {
    return this.#origin
  }

  get lastEventId(): string {
    return this.#lastEventId
  }

  get source(): unknown {
    return this.#source
  }

  get ports(): readonly unknown[] {
    return this.#ports
  }

  initMessageEvent(
    type: unknown,
    bubbles?: unknown,
    cancelable?: unknown,
    data: unknown = null,
    origin: unknown = '',
    id: unknown = '',
    source: unknown = null,
    ports: Iterable<unknown> = [],
  ): void {
    if (arguments.length === 0) throw new TypeError('An event needs a type.')
    this.initEvent(type, bubbles, cancelable)
    this.#data = data
    this.#origin = toText(origin)
    this.#lastEventId = toText(id)
    this.#source = sourceOf(source)
    this.#ports = portsOf(ports)
  }
}

function sourceOf(source: unknown): unknown {
  if (source === undefined || source === null) return null
  if (isPort(source)) return source
  throw new TypeError('The source of a message must be a MessagePort.')
}

function portsOf(given: Iterable<unknown> | undefined): readonly unknown[] {
  if (given === undefined) return Object.freeze([])
  const ports = [...given]
  if (!ports.every(isPort)) throw new TypeError('The ports of a message must be MessagePorts.')
  return Object.freeze(ports)
}

/** Proves to the constructor that the runtime makes the port. */
const INTERNAL = Symbol('internal')

/** One end of a channel. It stays when its port is transferred to a new one. */
interface End {
  port: MessagePort | undefined
  other: End | undefined
  readonly queue: ClonedMessage[]
  isStarted: boolean
  isScheduled: boolean
}

export let isPort: (value: unknown) => value is MessagePort
/** A port that stands for no end yet. */
export let newPort: () => MessagePort
/** Gives the end of one port to another. */
export let movePort: (from: MessagePort, to: MessagePort) => void
export let isDetached: (port: MessagePort) => boolean
let attach: (port: MessagePort, end: End) => void

type Handler = ((event: Event) => unknown) | null

export class MessagePort extends EventTarget {
  #end: End | undefined
  #onmessage: Handler = null
  #onmessageerror: Handler = null
  #listener: ((event: Event) => void) | undefined
  #errorListener: ((event: Event) => void) | undefined

  static {
    isPort = (value): value is MessagePort => typeof value === 'object' && value !== null && #end in value
    newPort = () => new MessagePort(INTERNAL)
    isDetached = (port) => port.#end === undefined
    attach = (port, end) => {
      port.#end = end
      end.port = port
    }
    movePort = (from, to) => {
      const end = from.#end!
      from.#end = undefined
      end.isStarted = false
      attach(to, end)
    }
  }

  constructor(proof?: unknown) {
    if (proof !== INTERNAL) throw new TypeError('A MessagePort comes from a MessageChannel.')
    super()
  }

  postMessage(message: unknown, options?: Iterable<unknown> | { transfer?: Iterable<unknown> } | null): void {
    if (arguments.length === 0) throw new TypeError('postMessage needs a message.')
    const transfer = transferOf(options)
    const end = this.#end
    const target = end?.other
    if (transfer.includes(this)) throw new DOMException('A port cannot be sent over itself.', 'DataCloneError')
    const isLost = target?.port !== undefined && transfer.includes(target.port)
    const cloned = cloneMessage(message, transfer)
    if (target === undefined || isLost) return
    target.queue.push(cloned)
    schedule(target)
  }

  start(): void {
    const end = this.#end
    if (end === undefined) return
    end.isStarted = true
    schedule(end)
  }

  close(): void {
    const end = this.#end
    if (end === undefined) return
    this.#end = undefined
    const { other } = end
    if (other !== undefined) other.other = undefined
    end.other = undefined
    end.port = undefined
    end.queue.length = 0
    const port = other?.port
    if (port !== undefined) setTimeout(() => port.dispatchEvent(new Event('close')), 0)
  }

  /** Nothing here keeps a function alive or lets it end. */
  ref(): void {}
  unref(): void {}

  get onmessage(): Handler {
    return this.#onmessage
  }

  set onmessage(given: Handler) {
    this.#onmessage = typeof given === 'function' || (typeof given === 'object' && given !== null) ? given : null
    if (this.#listener === undefined) {
      this.#listener = (event) => this.#call(this.#onmessage, event)
      this.addEventListener('message', this.#listener)
    }
    this.start()
  }

  get onmessageerror(): Handler {
    return this.#onmessageerror
  }

  set onmessageerror(given: Handler) {
    this.#onmessageerror = typeof given === 'function' ? given : null
    if (this.#errorListener !== undefined) return
    this.#errorListener = (event) => this.#call(this.#onmessageerror, event)
    this.addEventListener('messageerror', this.#errorListener)
  }

  #call(handler: Handler, event: Event): void {
    if (typeof handler === 'function') Reflect.apply(handler, this, [event])
  }
}

function transferOf(options: unknown): unknown[] {
  if (options === undefined || options === null) return []
  if (typeof options !== 'object' && typeof options !== 'function') throw new TypeError('What is transferred must be a list.')
  if (Symbol.iterator in options) return [...(options as Iterable<unknown>)]
  const { transfer } = options as { transfer?: Iterable<unknown> }
  return transfer === undefined ? [] : [...transfer]
}

function schedule(end: End): void {
  if (!end.isStarted || end.isScheduled || end.queue.length === 0) return
  end.isScheduled = true
  setTimeout(() => deliver(end), 0)
}

/** Delivers one message. The next one has a turn of its own. */
function deliver(end: End): void {
  end.isScheduled = false
  const { port } = end
  if (port === undefined || !end.isStarted) return
  const message = end.queue.shift()
  if (message === undefined) return
  schedule(end)
  port.dispatchEvent(new MessageEvent('message', { data: message.value, ports: message.ports }))
}

export class MessageChannel {
  readonly #port1 = newPort()
  readonly #port2 = newPort()

  constructor() {
    const made = (): End => ({ port: undefined, other: undefined, queue: [], isStarted: false, isScheduled: false })
    const [one, two] = [made(), made()]
    one.other = two
    two.other = one
    attach(this.#port1, one)
    attach(this.#port2, two)
  }

  get port1(): MessagePort {
    return this.#port1
  }

  get port2(): MessagePort {
    return this.#port2
  }
}

asInterfaces({ MessageChannel, MessageEvent, MessagePort })
