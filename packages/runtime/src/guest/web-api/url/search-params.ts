import {
  hasOwn,
  iteratorSymbol,
  apply,
  arrayOf,
  arraySort,
  type List,
  objectKeys,
  SafeList,
  SafeTypeError,
  stringSlice,
  stringStartsWith,
} from '../../language/primordials.ts'
import { isIterable, toScalarText, valuesOf } from '../../language/values.ts'
import { customInspect } from '../console/inspect.ts'
import { allValues, firstValue, hasPair, type Pair, pairIterator, removePairs, setPair } from '../pairs.ts'
import { parseForm, serializeForm } from './percent-encoding.ts'

export let isSearchParams: (value: unknown) => value is URLSearchParams
/** The parameters as text; unlike `toString` it is not what user code may have put in its place. */
export let textOfParams: (params: URLSearchParams) => string
/** Sets what is called with the new text after each change: the URL that the parameters belong to. */
export let linkParams: (params: URLSearchParams, onChange: (text: string) => void) => void
/** Takes over a query that was set on the URL. */
export let refreshParams: (params: URLSearchParams, query: string | null) => void

export class URLSearchParams {
  #pairs: List<Pair> = new SafeList()
  #onChange: ((text: string) => void) | undefined

  static {
    isSearchParams = (value): value is URLSearchParams => typeof value === 'object' && value !== null && #pairs in value
    textOfParams = (params) => serializeForm(params.#pairs)
    linkParams = (params, onChange) => {
      params.#onChange = onChange
    }
    refreshParams = (params, query) => {
      params.#pairs = query === null ? new SafeList() : parseForm(query)
    }
  }

  constructor(init: unknown = '') {
    if ((typeof init === 'object' && init !== null) || typeof init === 'function') {
      this.#pairs = isSearchParams(init) && !hasOwn(init, iteratorSymbol) ? copyPairs(init.#pairs) : pairsOf(init)
    } else {
      const text = toScalarText(init)
      this.#pairs = parseForm(stringStartsWith(text, '?') ? stringSlice(text, 1) : text)
    }
  }

  get size(): number {
    return this.#pairs.length
  }

  append(name: unknown, value: unknown): void {
    this.#pairs[this.#pairs.length] = [toScalarText(name), toScalarText(value)]
    this.#changed()
  }

  delete(name: unknown, value?: unknown): void {
    removePairs(this.#pairs, toScalarText(name), value === undefined ? undefined : toScalarText(value))
    this.#changed()
  }

  get(name: unknown): string | null {
    return firstValue(this.#pairs, toScalarText(name))
  }

  getAll(name: unknown): string[] {
    return arrayOf(allValues(this.#pairs, toScalarText(name)))
  }

  has(name: unknown, value?: unknown): boolean {
    return hasPair(this.#pairs, toScalarText(name), value === undefined ? undefined : toScalarText(value))
  }

  set(name: unknown, value: unknown): void {
    setPair(this.#pairs, toScalarText(name), toScalarText(value))
    this.#changed()
  }

  sort(): void {
    arraySort(this.#pairs, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
    this.#changed()
  }

  forEach(callback: (value: string, name: string, params: URLSearchParams) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new SafeTypeError('forEach needs a function.')
    for (let index = 0; index < this.#pairs.length; index++) {
      const pair = this.#pairs[index]!
      apply(callback, self, [pair[1], pair[0], this])
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
    return pairIterator('URLSearchParams', () => this.#pairs, 'entries')
  }

  toString(): string {
    return serializeForm(this.#pairs)
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    let shown = ''
    for (let index = 0; index < this.#pairs.length; index++) {
      const pair = this.#pairs[index]!
      shown += `${index === 0 ? ' ' : ', '}${inspect(pair[0])} => ${inspect(pair[1])}`
    }
    return shown === '' ? 'URLSearchParams {}' : `URLSearchParams {${shown} }`
  }

  get [Symbol.toStringTag](): string {
    return 'URLSearchParams'
  }

  #changed(): void {
    const onChange = this.#onChange
    onChange?.(serializeForm(this.#pairs))
  }
}

function copyPairs(pairs: List<Pair>): List<Pair> {
  const copy = new SafeList<Pair>()
  for (let index = 0; index < pairs.length; index++) copy[index] = [pairs[index]![0], pairs[index]![1]]
  return copy
}

function pairsOf(init: object): List<Pair> {
  const pairs = new SafeList<Pair>()
  if (!isIterable(init)) {
    const names = objectKeys(init)
    for (let index = 0; index < names.length; index++) {
      const name = names[index]!
      pairs[index] = [toScalarText(name), toScalarText((init as Record<string, unknown>)[name])]
    }
    return pairs
  }
  const items = valuesOf(init as Iterable<Iterable<unknown>>)
  for (let index = 0; index < items.length; index++) {
    const pair = valuesOf(items[index]!)
    if (pair.length !== 2) throw new SafeTypeError('URLSearchParams needs pairs of a name and a value.')
    pairs[pairs.length] = [toScalarText(pair[0]), toScalarText(pair[1])]
  }
  return pairs
}
