import type { LogLevel } from '@carpool/core'
import {
  defineProperty,
  arrayJoin,
  type List,
  numberToFixed,
  SafeError,
  SafeList,
  SafeMap,
  setHidden,
  stringRepeat,
  stringSplit,
} from '../../language/primordials.ts'
import { toText } from '../../language/values.ts'
import { logText, now } from '../host.ts'
import { cap, errorText } from '../errors.ts'
import { format, formatTable } from './format.ts'
import { inspect } from './inspect.ts'

/** Longest text of one console call; the rest is cut off and counted. */
const TEXT_CHARS = 16_384
const GROUPS_MAX = 20

const counts = new SafeMap<string, number>()
const timers = new SafeMap<string, number>()
let groups = 0

function write(level: LogLevel, text: string): void {
  const capped = cap(text, TEXT_CHARS)
  const indent = stringRepeat('  ', groups)
  logText(level, groups === 0 ? capped : indent + arrayJoin(stringSplit(capped, '\n'), `\n${indent}`))
}

function writeArgs(level: LogLevel, args: List<unknown>): void {
  let text
  try {
    text = format(args)
  } catch (error) {
    // A getter, a proxy trap or a custom inspect of the value threw: console calls never do.
    text = `[a value that cannot be shown: ${errorText(error)}]`
  }
  write(level, text)
}

/** A text in place of the first `count` arguments. */
function replaceFirst(text: string, args: List<unknown>, count: number): List<unknown> {
  const list = new SafeList<unknown>()
  list[0] = text
  for (let index = count; index < args.length; index++) list[list.length] = args[index]
  return list
}

function labelOf(label: unknown): string {
  return label === undefined ? 'default' : toText(label)
}

function elapsed(label: string): string {
  const ms = now() - timers.get(label)!
  return ms < 1000 ? `${numberToFixed(ms, 3)}ms` : `${numberToFixed(ms / 1000, 3)}s`
}

function noTimer(label: string): void {
  write('warn', `There is no timer '${label}'`)
}

function openGroup(args: List<unknown>): void {
  if (args.length > 0) writeArgs('info', args)
  if (groups < GROUPS_MAX) groups++
}

/** The `console` of user code. Each call sends one text to the log of the current invocation, at once. */
export const guestConsole = {
  // As a namespace of WebIDL.
  __proto__: {},
  log(...args: unknown[]): void {
    writeArgs('info', args)
  },
  info(...args: unknown[]): void {
    writeArgs('info', args)
  },
  debug(...args: unknown[]): void {
    writeArgs('debug', args)
  },
  warn(...args: unknown[]): void {
    writeArgs('warn', args)
  },
  error(...args: unknown[]): void {
    writeArgs('error', args)
  },
  trace(...args: unknown[]): void {
    const error = new SafeError(args.length === 0 ? '' : format(args))
    setHidden(error, 'name', 'Trace')
    write('debug', errorText(error))
  },
  assert(condition?: unknown, ...args: unknown[]): void {
    if (condition) return
    const first = args.length === 0 ? undefined : args[0]
    if (typeof first === 'string') writeArgs('error', replaceFirst(`Assertion failed: ${first}`, args, 1))
    else writeArgs('error', replaceFirst(args.length === 0 ? 'Assertion failed' : 'Assertion failed:', args, 0))
  },
  dir(value?: unknown, options?: { depth?: number | null }): void {
    const depth = options?.depth === null ? 100 : options?.depth
    try {
      write('info', depth === undefined ? inspect(value) : inspect(value, { depth }))
    } catch (error) {
      write('info', `[a value that cannot be shown: ${errorText(error)}]`)
    }
  },
  dirxml(...args: unknown[]): void {
    writeArgs('info', args)
  },
  table(data?: unknown, columns?: readonly string[]): void {
    if (typeof data !== 'object' || data === null) return writeArgs('info', [data])
    try {
      write('info', formatTable(data, columns))
    } catch {
      writeArgs('info', [data])
    }
  },
  group(...args: unknown[]): void {
    openGroup(args)
  },
  groupCollapsed(...args: unknown[]): void {
    openGroup(args)
  },
  groupEnd(): void {
    if (groups > 0) groups--
  },
  count(label?: unknown): void {
    const name = labelOf(label)
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    write('info', `${name}: ${count}`)
  },
  countReset(label?: unknown): void {
    counts.delete(labelOf(label))
  },
  time(label?: unknown): void {
    const name = labelOf(label)
    if (timers.has(name)) write('warn', `The timer '${name}' runs already`)
    else timers.set(name, now())
  },
  timeLog(label?: unknown, ...args: unknown[]): void {
    const name = labelOf(label)
    if (timers.has(name)) writeArgs('info', replaceFirst(`${name}: ${elapsed(name)}`, args, 0))
    else noTimer(name)
  },
  timeEnd(label?: unknown): void {
    const name = labelOf(label)
    if (!timers.has(name)) return noTimer(name)
    write('info', `${name}: ${elapsed(name)}`)
    timers.delete(name)
  },
  clear(): void {},
  profile(): void {},
  profileEnd(): void {},
  timeStamp(): void {},
}

defineProperty(guestConsole, Symbol.toStringTag, { __proto__: null, value: 'console', configurable: true } as PropertyDescriptor)
