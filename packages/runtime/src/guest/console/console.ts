import type { LogLevel } from '@carpool/core'
import { current } from '../current.ts'
import { now } from '../clock.ts'
import { cap, errorText } from '../errors/describe-error.ts'
import { bridge } from '../port.ts'
import { arrayJoin, arraySlice, SafeMap, stringRepeat, stringSplit } from '../primordials.ts'
import { format } from './format.ts'
import { inspect } from './inspect.ts'
import { formatTable } from './table.ts'
import { toText } from '../to-text.ts'

/** Longest text of one console call; the rest is cut off and counted. */
const TEXT_CHARS = 16_384
const GROUPS_MAX = 20

const counts = new SafeMap<string, number>()
const timers = new SafeMap<string, number>()
let groups = 0

function write(level: LogLevel, text: string): void {
  const capped = cap(text, TEXT_CHARS)
  const indent = stringRepeat('  ', groups)
  bridge.log(current, level, groups === 0 ? capped : indent + arrayJoin(stringSplit(capped, '\n'), `\n${indent}`))
}

function writeArgs(level: LogLevel, args: readonly unknown[]): void {
  let text
  try {
    text = format(args)
  } catch (error) {
    // A getter, a proxy trap or a custom inspect of the value threw: console calls never do.
    text = `[a value that cannot be shown: ${errorText(error)}]`
  }
  write(level, text)
}

function labelOf(label: unknown): string {
  return label === undefined ? 'default' : toText(label)
}

function elapsed(label: string): string {
  const ms = now() - timers.get(label)!
  return ms < 1000 ? `${ms.toFixed(3)}ms` : `${(ms / 1000).toFixed(3)}s`
}

function noTimer(label: string): void {
  write('warn', `There is no timer '${label}'`)
}

/** The `console` of user code. Each call sends one text to the log of the current invocation, at once. */
export const guestConsole = {
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
    const error = new Error(args.length === 0 ? '' : format(args))
    error.name = 'Trace'
    writeArgs('debug', [errorText(error)])
  },
  assert(condition?: unknown, ...args: unknown[]): void {
    if (condition) return
    const [first] = args
    if (typeof first === 'string') writeArgs('error', [`Assertion failed: ${first}`, ...arraySlice(args, 1)])
    else writeArgs('error', args.length === 0 ? ['Assertion failed'] : ['Assertion failed:', ...args])
  },
  dir(value?: unknown, options?: { depth?: number | null }): void {
    const depth = options?.depth === null ? 100 : options?.depth
    try {
      write('info', inspect(value, depth === undefined ? {} : { depth }))
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
    if (args.length > 0) writeArgs('info', args)
    if (groups < GROUPS_MAX) groups++
  },
  groupCollapsed(...args: unknown[]): void {
    guestConsole.group(...args)
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
    if (timers.has(name)) writeArgs('info', [`${name}: ${elapsed(name)}`, ...args])
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
