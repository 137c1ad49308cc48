import { toText } from '../../language/values.ts'
import { DOMException } from '../../web-api/dom-exception.ts'
import { dispatch, Event, EventTarget, trusted } from '../../web-api/events.ts'
import { library, maxBodyBytes, type MessageKind, setTimeout } from '../../web-api/host.ts'
import { asInterfaces } from '../interfaces.ts'
import { CloseEvent } from './close-event.ts'
import { incoming, outgoing, utf8Length } from './message-text.ts'

const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3] as const
const MAX_REASON_BYTES = 123
/** No code was given. */
const NO_CODE = 1005
/** It broke off without a close frame. */
const ABNORMAL = 1006

/** The other end, for what this one sends. */
export interface OtherEnd {
  /** What waits until the other end takes it, in bytes. */
  readonly waitingBytes: number
  message(kind: MessageKind, text: string): void
  /** @param code {@link NO_CODE}: none */
  close(code: number, reason: string): void
}

interface Message {
  readonly kind: MessageKind
  readonly text: string
  /** It was dealt with: more may come. */
  readonly taken: (() => void) | undefined
}

/** How a WebSocket ended. */
interface Ending {
  readonly code: number
  readonly reason: string
  readonly wasClean: boolean
}

/** What the makers of WebSockets do with one; user code reaches none of it. */
export interface Inside {
  readonly socket: WebSocket
  other: OtherEnd | undefined
  /** Whether it hears of what comes. */
  readonly isAccepted: boolean
  /** Whether it went to a client with a response. */
  readonly isGivenAway: boolean
  /** Both ends speak the protocol from here on. */
  opened(protocol: string, extensions: string): void
  /** @param taken called when it was dealt with: more may come */
  message(kind: MessageKind, text: string, taken?: () => void): void
  /** The other end has closed it, or has answered the close of this one. */
  closed(code: number, reason: string): void
  /** It broke off. @param why for an event of the error; absent: none */
  broke(why?: string): void
  /** It is not for user code any more. @returns what has come of which nobody has heard */
  giveAway(): { readonly messages: readonly Message[]; readonly ending: Ending | undefined }
}

/** Proves to the constructor that the runtime makes the WebSocket. */
const INTERNAL = Symbol('internal')
type EventName = 'open' | 'message' | 'error' | 'close'
type Handler = ((event: Event) => unknown) | null

/** Makes one end of a pair: it is open, and hears of nothing before it is accepted. */
export let newEnd: () => Inside
/** What the runtime does with a WebSocket; undefined if it is none. */
export let insideOf: (value: unknown) => Inside | undefined
/** Opens what `new WebSocket` is asked for. Set by whoever can. */
let open: ((inside: Inside, url: string, protocols: readonly string[]) => void) | undefined

export function setOpener(opener: typeof open): void {
  open = opener
}

export class WebSocket extends EventTarget {
  static readonly CONNECTING = CONNECTING
  static readonly OPEN = OPEN
  static readonly CLOSING = CLOSING
  static readonly CLOSED = CLOSED

  readonly #inside: Inside
  readonly #isEnd: boolean
  #state: 0 | 1 | 2 | 3 = CONNECTING
  #url = ''
  #protocol = ''
  #extensions = ''
  #binaryType: 'arraybuffer' | 'blob' = 'blob'
  #hasAccepted = false
  #isGivenAway = false
  /** Messages and the end, before it is accepted; */
  #inbox: Message[] = []
  /** or behind those, which were not delivered yet. */
  #isCatchingUp = false
  #ending: Ending | undefined
  #handlers: Partial<Record<EventName, { handler: Handler }>> = {}

  static {
    newEnd = () => new WebSocket(INTERNAL).#inside
    insideOf = (value) => (typeof value === 'object' && value !== null && #inside in value ? value.#inside : undefined)
  }

  constructor(url: unknown, protocols?: unknown) {
    super()
    this.#isEnd = url === INTERNAL
    this.#inside = this.#makeInside()
    if (this.#isEnd) {
      this.#state = OPEN
      this.#binaryType = 'arraybuffer'
      return
    }
    if (arguments.length === 0) throw new TypeError('A WebSocket needs a URL.')
    this.#hasAccepted = true
    this.#url = checkUrl(toText(url))
    const names = protocolsOf(protocols)
    if (open === undefined) throw new DOMException('WebSockets cannot be opened here.', 'NotSupportedError')
    open(this.#inside, this.#url, names)
  }

  get url(): string {
    return this.#url
  }

  get readyState(): number {
    return this.#state
  }

  get protocol(): string {
    return this.#protocol
  }

  get extensions(): string {
    return this.#extensions
  }

  get bufferedAmount(): number {
    return this.#inside.other?.waitingBytes ?? 0
  }

  get binaryType(): string {
    return this.#binaryType
  }

  set binaryType(type: string) {
    if (type === 'arraybuffer' || type === 'blob') this.#binaryType = type
  }

  /** Begins to hear of what comes: of the ends of a WebSocketPair only. */
  accept(): void {
    if (!this.#isEnd) throw new TypeError('Only an end of a WebSocketPair is accepted.')
    this.#checkOwn()
    if (this.#hasAccepted) return
    this.#hasAccepted = true
    if (this.#inbox.length === 0 && this.#ending === undefined) return
    this.#isCatchingUp = true
    // In a turn of its own: whoever accepts adds listeners behind that.
    setTimeout(() => {
      for (let index = 0; index < this.#inbox.length; index++) this.#deliver(this.#inbox[index]!)
      this.#inbox = []
      this.#isCatchingUp = false
      if (this.#ending !== undefined) this.#finish(this.#ending)
    }, 0)
  }

  send(data: unknown): void {
    if (arguments.length === 0) throw new TypeError('send needs a message.')
    this.#checkOwn()
    if (this.#state === CONNECTING) throw new DOMException('The WebSocket is not open yet.', 'InvalidStateError')
    if (!this.#hasAccepted) throw new TypeError('A WebSocket must be accepted, by accept(), before anything is sent.')
    const { other } = this.#inside
    if (this.#state !== OPEN || other === undefined) return
    const { kind, text } = outgoing(data)
    if (text.length > maxBodyBytes) {
      throw new TypeError(`The message has ${text.length} bytes; the limit is ${maxBodyBytes}.`)
    }
    if (other.waitingBytes > maxBodyBytes) {
      throw new DOMException(
        `The messages that wait for the other end have ${other.waitingBytes} bytes; the limit is ${maxBodyBytes}.`,
        'QuotaExceededError',
      )
    }
    other.message(kind, text)
  }

  close(code?: unknown, reason?: unknown): void {
    this.#checkOwn()
    const given = code === undefined ? NO_CODE : Number(code) & 0xffff
    const text = reason === undefined ? '' : toText(reason)
    if (code !== undefined && !this.#mayCloseWith(given)) {
      throw new DOMException(`A WebSocket cannot be closed with the code ${given}.`, 'InvalidAccessError')
    }
    if (utf8Length(text) > MAX_REASON_BYTES) {
      throw new DOMException(`The reason of a close may have ${MAX_REASON_BYTES} bytes, not more.`, 'SyntaxError')
    }
    if (this.#state === CLOSING || this.#state === CLOSED) return
    this.#state = CLOSING
    this.#inside.other?.close(given, text)
  }

  get onopen(): Handler {
    return this.#handlerOf('open')
  }

  set onopen(given: Handler) {
    this.#setHandler('open', given)
  }

  get onmessage(): Handler {
    return this.#handlerOf('message')
  }

  set onmessage(given: Handler) {
    this.#setHandler('message', given)
  }

  get onerror(): Handler {
    return this.#handlerOf('error')
  }

  set onerror(given: Handler) {
    this.#setHandler('error', given)
  }

  get onclose(): Handler {
    return this.#handlerOf('close')
  }

  set onclose(given: Handler) {
    this.#setHandler('close', given)
  }

  /** Of an end, whatever a server may say (RFC 6455, section 7.4); else what the standard lets a client say. */
  #mayCloseWith(code: number): boolean {
    if (code >= 3000) return code <= 4999
    if (!this.#isEnd) return code === 1000
    return code >= 1000 && code <= 1014 && code !== 1004 && code !== NO_CODE && code !== ABNORMAL
  }

  #checkOwn(): void {
    if (this.#isGivenAway) throw new TypeError('The WebSocket was given away with a response.')
  }

  #opened(protocol: string, extensions: string): void {
    this.#protocol = protocol
    this.#extensions = extensions
    if (this.#state !== CONNECTING) return
    this.#state = OPEN
    dispatch(this, trusted(new Event('open')))
  }

  #came(message: Message): void {
    if (this.#hasAccepted && !this.#isCatchingUp) this.#deliver(message)
    else this.#inbox[this.#inbox.length] = message
  }

  #deliver({ kind, text, taken }: Message): void {
    // What comes while this end waits for the answer to its close still counts.
    if (this.#state !== CLOSED) {
      const { MessageEvent } = library('messages')
      const data = incoming(kind, text, this.#binaryType)
      dispatch(this, trusted(new MessageEvent('message', { data, origin: this.#url })))
    }
    taken?.()
  }

  #broke(why: string | undefined): void {
    if (this.#state !== CLOSED && why !== undefined) {
      const { ErrorEvent } = library('events')
      dispatch(this, trusted(new ErrorEvent('error', { message: why, error: new Error(why) })))
    }
    this.#ended({ code: ABNORMAL, reason: '', wasClean: false })
  }

  #ended(ending: Ending): void {
    if (this.#hasAccepted && !this.#isCatchingUp) return this.#finish(ending)
    if (this.#state === OPEN) this.#state = CLOSING
    this.#ending ??= ending
  }

  #finish(ending: Ending): void {
    if (this.#state === CLOSED) return
    this.#state = CLOSED
    this.#inside.other = undefined
    dispatch(this, trusted(new CloseEvent('close', ending)))
  }

  #makeInside(): Inside {
    const hasAccepted = (): boolean => this.#hasAccepted
    const isGivenAway = (): boolean => this.#isGivenAway
    return {
      socket: this,
      other: undefined,
      get isAccepted() {
        return hasAccepted()
      },
      get isGivenAway() {
        return isGivenAway()
      },
      opened: (protocol, extensions) => this.#opened(protocol, extensions),
      message: (kind, text, taken) => this.#came({ kind, text, taken }),
      closed: (code, reason) => this.#ended({ code, reason, wasClean: true }),
      broke: (why) => this.#broke(why),
      giveAway: () => {
        this.#isGivenAway = true
        return { messages: this.#inbox, ending: this.#ending }
      },
    }
  }

  #handlerOf(name: EventName): Handler {
    return this.#handlers[name]?.handler ?? null
  }

  #setHandler(name: EventName, given: Handler): void {
    const handler = typeof given === 'function' || (typeof given === 'object' && given !== null) ? given : null
    const known = this.#handlers[name]
    if (known !== undefined) known.handler = handler
    else {
      const made = (this.#handlers[name] = { handler })
      this.addEventListener(name, (event) => {
        if (typeof made.handler === 'function') Reflect.apply(made.handler, this, [event])
      })
    }
  }
}

function checkUrl(text: string): string {
  const { requireUrl, serializeUrl } = library('url')
  let url
  try {
    url = requireUrl(text)
  } catch {
    throw new DOMException(`${JSON.stringify(text)} is no URL of a WebSocket.`, 'SyntaxError')
  }
  const serialized = serializeUrl(url)
  const written = serialized.startsWith('http') ? `ws${serialized.slice(4)}` : serialized
  if (!written.startsWith('ws:') && !written.startsWith('wss:')) {
    throw new DOMException('The URL of a WebSocket begins with ws: or wss:.', 'SyntaxError')
  }
  if (written.includes('#')) throw new DOMException('The URL of a WebSocket has no fragment.', 'SyntaxError')
  return written
}

const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/

function protocolsOf(given: unknown): readonly string[] {
  if (given === undefined || given === null) return []
  const names =
    typeof given === 'object' && Symbol.iterator in given ? [...(given as Iterable<unknown>)].map(toText) : [toText(given)]
  if (names.some((name) => !TOKEN.test(name)) || new Set(names).size < names.length) {
    throw new DOMException('The protocols of a WebSocket are names, each once.', 'SyntaxError')
  }
  return names
}

Object.defineProperties(WebSocket.prototype, {
  CONNECTING: { value: CONNECTING, enumerable: true },
  OPEN: { value: OPEN, enumerable: true },
  CLOSING: { value: CLOSING, enumerable: true },
  CLOSED: { value: CLOSED, enumerable: true },
})
asInterfaces({ WebSocket })
