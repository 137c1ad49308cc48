import type { LogLevel } from '@carpool/core'
import { BODY_KINDS, type BodyKind, type GuestBridge, LOG_LEVELS, NO_INVOCATION, SAYS } from '../bridge.ts'
import { dateNow, stringSplit, typedArrayLength } from './language/primordials.ts'

let host: GuestBridge

/** From now on nothing is said to the host. @returns what ends that */
export function mute(): () => void {
  const heard = host
  host = { ...heard, say: () => {} }
  return () => {
    host = heard
  }
}

/** What the addon puts beside `say`; a test may have no addon. */
interface InnerState {
  readonly carried?: (...value: unknown[]) => unknown
  readonly inside?: (value: unknown) => readonly [kind: number, unknown, unknown] | undefined
}

export let innerState: InnerState

/** Takes the functions that the host gives to `boot`: `names` says what each is, in order, between commas. */
export function connectBridge(names: string, functions: readonly unknown[]): void {
  const connected = { __proto__: null } as unknown as Record<string, unknown>
  const list = stringSplit(names, ',')
  for (let index = 0; index < list.length; index++) connected[list[index]!] = functions[index]
  host = connected as unknown as GuestBridge
  innerState = host.say as unknown as InnerState
}

/**
 * The invocation on whose behalf this entry runs; log lines, timers and fetches are counted to it. Every entry sets it, and all
 * microtasks of an entry run before the next one begins. A continuation of one invocation that another one's entry released is
 * counted to the latter, unless {@link tellCallsApart} was called.
 */
let currentInvocation = NO_INVOCATION
let tellsApart = false
/** Without the addon nothing is carried by promises. */
let carriedHere: unknown

let invocationIn: (carried: unknown) => number | undefined
let valueIn: (carried: unknown) => unknown

/** What continuations of promises carry along: which invocation made them, and what the function itself has them carry. */
class Frame {
  readonly #invocation: number
  readonly #value: unknown

  static {
    const isFrame = (value: unknown): value is Frame => typeof value === 'object' && value !== null && #invocation in value
    invocationIn = (value) => (isFrame(value) ? value.#invocation : undefined)
    valueIn = (value) => (isFrame(value) ? value.#value : value)
  }

  constructor(invocation: number, value: unknown) {
    this.#invocation = invocation
    this.#value = value
  }
}

function carriedNow(): unknown {
  const { carried } = innerState
  return carried === undefined ? carriedHere : carried()
}

function carryOn(value: unknown): void {
  const { carried } = innerState
  if (carried === undefined) carriedHere = value
  else carried(value)
}

export function enter(invocation: number): void {
  currentInvocation = invocation
  if (tellsApart) carryOn(new Frame(invocation, undefined))
}

/** The invocation whose code runs. */
export function invocationNow(): number {
  if (!tellsApart) return currentInvocation
  return invocationIn(carriedNow()) ?? currentInvocation
}

/**
 * From now on continuations are counted to the invocation that made them. Where calls share a socket the entry that brings what
 * one of them waits for is mostly another one's: its fetches would end with that one. What was made before is not told apart, as
 * by calls that wait for the first WebSocket of a function before that is made.
 */
export function tellCallsApart(): void {
  if (tellsApart) return
  const value = carriedNow()
  tellsApart = true
  carryOn(new Frame(currentInvocation, value))
}

/** What the function has continuations carry. */
export function carried(): unknown {
  return valueIn(carriedNow())
}

export function carry(value: unknown): void {
  carryOn(tellsApart ? new Frame(invocationNow(), value) : value)
}

let carriesOver = false

/** From now on timers carry along what was carried when they were started, and every entry begins with nothing. */
export function carryOverTimers(): void {
  carriesOver = true
}

/** What a timer that starts now carries along. */
export function carriedByTimer(): unknown {
  return carriesOver ? carried() : undefined
}

/** A timer fires, or another entry begins, with nothing. */
export function carryForTimer(value: unknown): void {
  if (carriesOver) carry(value)
}

/** Calls, and UTF-16 units of text in them, that may be on their way to the host: it keeps them outside every memory limit. */
const CREDIT_CALLS = 256
const CREDIT_UNITS = 512 * 1024

let calls = 0
let units = 0

// Credits come back only when the drain is through, and a call leaves only after that: a stack overflow, which user code can
// bring about at any point of this, must not let a call pass uncounted.

/** Counts a call, before it is made, that user code can make as often as it likes. Blocks when the credits are used up. */
function spendCall(textUnits: number): void {
  calls++
  spendText(textUnits)
}

/** The same where only the text counts: the host caused each such call, or what was to be sent is refused. */
export function spendText(textUnits: number): void {
  units += textUnits
  if (calls <= CREDIT_CALLS && units <= CREDIT_UNITS) return
  const pauseMs = host.drain()
  if (pauseMs > 0) pause(pauseMs)
  calls = 0
  units = 0
}

/** Holds up user code, which is what floods the host. */
function pause(ms: number): void {
  const startedMs = dateNow()
  for (;;) {
    const passedMs = dateNow() - startedMs
    // The machine's clock may be set back.
    if (passedMs >= ms || passedMs < 0) return
  }
}

function indexIn(list: readonly string[], text: string): number {
  let index = 0
  while (list[index] !== text) index++
  return index
}

/** Runs the script of a library. */
export function loadLibrary(number: number, require: (number: number) => unknown): unknown {
  return host.library(number, require)
}

/**
 * All that the runtime can say, as this context holds it: a module variable that user code cannot reach, for neither a global
 * nor an object that is handed out leads to it. It counts against the credits.
 */
export const bridge = {
  loaded(report: string): void {
    host.say(SAYS.loaded, 0, 0, 0, report, '')
  },
  answer(invocation: number, head: string, kind: BodyKind, body: string): void {
    spendText(head.length + body.length)
    host.say(SAYS.answer, invocation, 0, indexIn(BODY_KINDS, kind), head, body)
  },
  fail(invocation: number, failure: string): void {
    spendText(failure.length)
    host.say(SAYS.fail, invocation, 0, 0, failure, '')
  },
  canceled(invocation: number): void {
    host.say(SAYS.canceled, invocation, 0, 0, '', '')
  },
  startTimer(invocation: number, timer: number, delayMs: number): void {
    spendCall(0)
    host.say(SAYS.startTimer, invocation, timer, delayMs, '', '')
  },
  stopTimer(timer: number): void {
    spendCall(0)
    host.say(SAYS.stopTimer, timer, 0, 0, '', '')
  },
  startFetch(invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void {
    spendCall(head.length + body.length)
    host.say(SAYS.startFetch, invocation, fetch, indexIn(BODY_KINDS, kind), head, body)
  },
  stopFetch(fetch: number): void {
    spendCall(0)
    host.say(SAYS.stopFetch, fetch, 0, 0, '', '')
  },
  answerHead(invocation: number, head: string): void {
    spendText(head.length)
    host.say(SAYS.answerHead, invocation, 0, 0, head, '')
  },
  endAnswer(invocation: number): void {
    host.say(SAYS.endAnswer, invocation, 0, 0, '', '')
  },
  /**
   * @param invocation on whose behalf it is sent
   * @param flags the owner, with STREAM_FLAGS
   */
  streamData(number: number, invocation: number, flags: number, text: string, bytes: string | Uint8Array): void {
    spendCall(text.length + (typeof bytes === 'string' ? bytes.length : typedArrayLength(bytes)))
    host.say(SAYS.streamData, number, invocation, flags, text, bytes)
  },
  streamCredit(number: number, owner: number, bytes: number): void {
    spendCall(0)
    host.say(SAYS.streamCredit, number, bytes, owner, '', '')
  },
  streamAbort(number: number, flags: number, why: string): void {
    spendCall(why.length)
    host.say(SAYS.streamAbort, number, 0, flags, why, '')
  },
  joinStreams(from: number, to: number, owners: number, bytes: number): void {
    spendCall(0)
    host.say(SAYS.joinStreams, from, to, owners, `${bytes}`, '')
  },
  openSocket(invocation: number, socket: number, target: string): void {
    spendCall(target.length)
    host.say(SAYS.openSocket, invocation, socket, 0, target, '')
  },
  startTls(socket: number, options: string): void {
    spendCall(options.length)
    host.say(SAYS.startTls, socket, 0, 0, options, '')
  },
  stopSocket(socket: number): void {
    spendCall(0)
    host.say(SAYS.stopSocket, socket, 0, 0, '', '')
  },
  /** Has the addon call when the entry has run with all its microtasks. */
  awaitEnd(): void {
    host.say(SAYS.awaitEnd, 0, 0, 0, '', '')
  },
  log(level: LogLevel, text: string, isRejection: boolean): void {
    spendCall(text.length)
    host.say(SAYS.log, invocationNow(), isRejection ? 1 : 0, indexIn(LOG_LEVELS, level), text, '')
  },
  random(bytes: Uint8Array, at: number): number {
    return host.random(bytes, at)
  },
}
