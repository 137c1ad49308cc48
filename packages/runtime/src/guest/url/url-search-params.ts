import { customInspect } from '../console/inspect.ts'
import { pairIterator } from '../pair-iterator.ts'
import { SafeTypeError } from '../primordials.ts'
import { type Pair, parseForm, serializeForm } from './form-urlencoded.ts'
import { toScalarText } from '../to-text.ts'

export let isSearchParams: (value: unknown) => value is URLSearchParams
/** Sets what is called with the new text after each change: the URL that the parameters belong to. */
export let linkParams: (params: URLSearchParams, onChange: (text: string) => void) => void
/** Takes over a query that was set on the URL. */
export let refreshParams: (params: URLSearchParams, query: string | null) => void

export class URLSearchParams {
  #pairs: Pair[] = []
  #onChange: ((text: string) => void) | undefined

  static {
    isSearchParams = (value): value is URLSearchParams => typeof value === 'object' && value !== null && #pairs in value
    linkParams = (params, onChange) => {
      params.#onChange = onChange
    }
    refreshParams = (params, query) => {
      params.#pairs = query === null ? [] : parseForm(query)
    }
  }

  constructor(init: unknown = '') {
    if ((typeof init === 'object' && init !== null) || typeof init === 'function') {
      this.#pairs = isSearchParams(init) ? init.#pairs.map(([name, value]) => [name, value]) : pairsOf(init)
    } else {
      this.#pairs = parseForm(toScalarText(init).replace(/^\?/, ''))
    }
  }

  get size(): number {
    return this.#pairs.length
  }

  append(name: unknown, value: unknown): void {
    this.#pairs.push([toScalarText(name), toScalarText(value)])
    this.#changed()
  }

  delete(name: unknown, value?: unknown): void {
    const key = toScalarText(name)
    const only = value === undefined ? undefined : toScalarText(value)
    this.#pairs = this.#pairs.filter(([other, held]) => other !== key || (only !== undefined && held !== only))
    this.#changed()
  }

  get(name: unknown): string | null {
    const key = toScalarText(name)
    return this.#pairs.find(([other]) => other === key)?.[1] ?? null
  }

  getAll(name: unknown): string[] {
    const key = toScalarText(name)
    return this.#pairs.filter(([other]) => other === key).map(([, value]) => value)
  }

  has(name: unknown, value?: unknown): boolean {
    const key = toScalarText(name)
    const only = value === undefined ? undefined : toScalarText(value)
    return this.#pairs.some(([other, held]) => other === key && (only === undefined || held === only))
  }

  set(name: unknown, value: unknown): void {
    const key = toScalarText(name)
    const text = toScalarText(value)
    const first = this.#pairs.findIndex(([other]) => other === key)
    if (first === -1) {
      this.#pairs.push([key, text])
    } else {
      this.#pairs = this.#pairs.filter(([other], index) => index <= first || other !== key)
      this.#pairs[first] = [key, text]
    }
    this.#changed()
  }

  sort(): void {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    this.#changed()
  }

  forEach(callback: (value: string, name: string, params: URLSearchParams) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new SafeTypeError('forEach needs a function.')
    for (let index = 0; index < this.#pairs.length; index++) {
      const [name, value] = this.#pairs[index]!
      callback.call(self, value, name, this)
    }
  }

  entries(): IteratorObject<Pair> {
    return pairIterator('URLSearchParams', () => this.#pairs, 'entries')
  }

  keys(): IteratorObject<string> {
    return pairIterator('URLSearchParams', () => this.#pairs, 'keys')
  }

  values(): IteratorObject<string> {
    return pairIterator('URLSearchParams', () => this.#pairs, 'values')
  }

  [Symbol.iterator](): IteratorObject<Pair> {
    return this.entries()
  }

  toString(): string {
    return serializeForm(this.#pairs)
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    return `URLSearchParams ${inspect(new Map(this.#pairs)).replace(/^Map\(\d+\) /, '')}`
  }

  get [Symbol.toStringTag](): string {
    return 'URLSearchParams'
  }

  #changed(): void {
    this.#onChange?.(this.toString())
  }
}

function pairsOf(init: object): Pair[] {
  const iterator = (init as { [Symbol.iterator]?: unknown })[Symbol.iterator]
  if (iterator === undefined || iterator === null) {
    return Object.keys(init).map((name) => [toScalarText(name), toScalarText((init as Record<string, unknown>)[name])])
  }
  return Array.from(init as Iterable<Iterable<unknown>>, (item) => {
    const pair = [...item]
    if (pair.length !== 2) throw new SafeTypeError('URLSearchParams needs pairs of a name and a value.')
    return [toScalarText(pair[0]), toScalarText(pair[1])]
  })
}
