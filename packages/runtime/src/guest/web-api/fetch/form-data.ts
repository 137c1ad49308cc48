import { apply, arrayOf, type List, SafeList, SafeTypeError, stringReplaceAll } from '../../language/primordials.ts'
import { replaceMatches, toScalarText } from '../../language/values.ts'
import { allValues, firstValue, hasPair, type Pair, pairIterator, removePairs, setPair } from '../pairs.ts'

export let isFormData: (value: unknown) => value is FormData
/** Form data with the given entries. */
export let formDataOf: (pairs: List<Pair>) => FormData
/** Writes form data as `multipart/form-data`. */
export let multipartOf: (form: FormData, boundary: string) => string

const LINE_BREAK = /\r\n|\r|\n/g

/** Form data with text entries. Files wait for Blob and File. */
export class FormData {
  #pairs: List<Pair> = new SafeList()

  static {
    isFormData = (value): value is FormData => typeof value === 'object' && value !== null && #pairs in value
    formDataOf = (pairs) => {
      const form = new FormData()
      form.#pairs = pairs
      return form
    }
    multipartOf = (form, boundary) => {
      let body = ''
      for (let index = 0; index < form.#pairs.length; index++) {
        const pair = form.#pairs[index]!
        const value = replaceMatches(pair[1], LINE_BREAK, () => '\r\n')
        body += `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(pair[0])}"\r\n\r\n${value}\r\n`
      }
      return `${body}--${boundary}--\r\n`
    }
  }

  append(name: unknown, value: unknown): void {
    this.#pairs[this.#pairs.length] = [toScalarText(name), toScalarText(value)]
  }

  delete(name: unknown): void {
    removePairs(this.#pairs, toScalarText(name), undefined)
  }

  get(name: unknown): string | null {
    return firstValue(this.#pairs, toScalarText(name))
  }

  getAll(name: unknown): string[] {
    return arrayOf(allValues(this.#pairs, toScalarText(name)))
  }

  has(name: unknown): boolean {
    return hasPair(this.#pairs, toScalarText(name), undefined)
  }

  set(name: unknown, value: unknown): void {
    setPair(this.#pairs, toScalarText(name), toScalarText(value))
  }

  forEach(callback: (value: string, name: string, form: FormData) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new SafeTypeError('forEach needs a function.')
    for (let index = 0; index < this.#pairs.length; index++) {
      const pair = this.#pairs[index]!
      apply(callback, self, [pair[1], pair[0], this])
    }
  }

  entries(): IteratorObject<Pair> {
    return pairIterator('FormData', () => this.#pairs, 'entries')
  }

  keys(): IteratorObject<string> {
    return pairIterator('FormData', () => this.#pairs, 'keys')
  }

  values(): IteratorObject<string> {
    return pairIterator('FormData', () => this.#pairs, 'values')
  }

  [Symbol.iterator](): IteratorObject<Pair> {
    return pairIterator('FormData', () => this.#pairs, 'entries')
  }

  get [Symbol.toStringTag](): string {
    return 'FormData'
  }
}

function escapeName(name: string): string {
  return stringReplaceAll(
    replaceMatches(name, LINE_BREAK, () => '%0D%0A'),
    '"',
    '%22',
  )
}
