/** `node:console` in a function: the global console, and consoles that write to streams. */
import { formatWithOptions, inspect } from 'node:util'

interface Output {
  write(text: string): unknown
}
interface Options {
  readonly stdout: Output
  readonly stderr?: Output
  readonly inspectOptions?: object
  readonly groupIndentation?: number
}

class Console {
  readonly #stdout: Output
  readonly #stderr: Output
  readonly #inspect: object
  readonly #step: string
  readonly #counts = new Map<string, number>()
  readonly #timers = new Map<string, number>()
  #indent = ''

  constructor(first: Output | Options, stderr?: Output) {
    const options: Options = 'stdout' in first ? first : { stdout: first, ...(stderr !== undefined && { stderr }) }
    this.#stdout = options.stdout
    this.#stderr = options.stderr ?? options.stdout
    this.#inspect = options.inspectOptions ?? {}
    this.#step = ' '.repeat(options.groupIndentation ?? 2)
    for (const name of Object.getOwnPropertyNames(Console.prototype)) {
      if (name === 'constructor') continue
      const method = (this as unknown as Record<string, (...args: unknown[]) => unknown>)[name]!
      Object.defineProperty(this, name, { value: method.bind(this), writable: true, configurable: true })
    }
  }

  log(...args: unknown[]): void {
    this.#write(this.#stdout, args)
  }
  info(...args: unknown[]): void {
    this.#write(this.#stdout, args)
  }
  debug(...args: unknown[]): void {
    this.#write(this.#stdout, args)
  }
  warn(...args: unknown[]): void {
    this.#write(this.#stderr, args)
  }
  error(...args: unknown[]): void {
    this.#write(this.#stderr, args)
  }
  trace(...args: unknown[]): void {
    const error = new Error(formatWithOptions(this.#inspect, ...args))
    error.name = 'Trace'
    this.#write(this.#stderr, [error.stack])
  }
  assert(condition?: unknown, ...args: unknown[]): void {
    if (condition) return
    if (typeof args[0] === 'string') args[0] = `Assertion failed: ${args[0]}`
    else args.unshift('Assertion failed')
    this.warn(...args)
  }
  dir(value: unknown, options?: object): void {
    this.#write(this.#stdout, [inspect(value, { customInspect: false, ...this.#inspect, ...options })])
  }
  dirxml(...args: unknown[]): void {
    this.log(...args)
  }
  table(value: unknown): void {
    this.log(value)
  }
  group(...args: unknown[]): void {
    if (args.length > 0) this.log(...args)
    this.#indent += this.#step
  }
  groupCollapsed(...args: unknown[]): void {
    this.group(...args)
  }
  groupEnd(): void {
    this.#indent = this.#indent.slice(this.#step.length)
  }
  count(label = 'default'): void {
    const count = (this.#counts.get(label) ?? 0) + 1
    this.#counts.set(label, count)
    this.log(`${label}: ${count}`)
  }
  countReset(label = 'default'): void {
    this.#counts.delete(label)
  }
  time(label = 'default'): void {
    this.#timers.set(label, performance.now())
  }
  timeLog(label = 'default', ...args: unknown[]): void {
    const start = this.#timers.get(label)
    if (start !== undefined) this.log(`${label}: ${(performance.now() - start).toFixed(3)}ms`, ...args)
  }
  timeEnd(label = 'default'): void {
    this.timeLog(label)
    this.#timers.delete(label)
  }

  #write(output: Output, args: readonly unknown[]): void {
    const text = formatWithOptions(this.#inspect, ...args)
    output.write(`${this.#indent === '' ? text : text.replace(/^/gm, this.#indent)}\n`)
  }
}

const world = globalThis.console as unknown as Record<string, unknown>
if (!('Console' in world)) Object.defineProperty(world, 'Console', { value: Console, writable: true, configurable: true })

export default world
