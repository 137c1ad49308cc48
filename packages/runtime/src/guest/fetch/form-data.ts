import { pairIterator } from '../pair-iterator.ts'
import { SafeTypeError } from '../primordials.ts'
import { toScalarText } from '../to-text.ts'

export let isFormData: (value: unknown) => value is FormData
/** Form data with the given entries. */
export let formDataOf: (pairs: [string, string][]) => FormData

/** Form data with text entries. Files wait for Blob and File. */
export class FormData {
  #pairs: [string, string][] = []

  static {
    isFormData = (value): value is FormData => typeof value === 'object' && value !== null && #pairs in value
    formDataOf = (pairs) => {
      const form = new FormData()
      form.#pairs = pairs
      return form
    }
  }

  append(name: unknown, value: unknown): void {
    this.#pairs.push([toScalarText(name), toScalarText(value)])
  }

  delete(name: unknown): void {
    const key = toScalarText(name)
    this.#pairs = this.#pairs.filter(([other]) => other !== key)
  }

  get(name: unknown): string | null {
    const key = toScalarText(name)
    return this.#pairs.find(([other]) => other === key)?.[1] ?? null
  }

  getAll(name: unknown): string[] {
    const key = toScalarText(name)
    return this.#pairs.filter(([other]) => other === key).map(([, value]) => value)
  }

  has(name: unknown): boolean {
    const key = toScalarText(name)
    return this.#pairs.some(([other]) => other === key)
  }

  set(name: unknown, value: unknown): void {
    const key = toScalarText(name)
    const held = toScalarText(value)
    const first = this.#pairs.findIndex(([other]) => other === key)
    if (first === -1) {
      this.#pairs.push([key, held])
      return
    }
    this.#pairs = this.#pairs.filter(([other], index) => index <= first || other !== key)
    this.#pairs[first] = [key, held]
  }

  forEach(callback: (value: string, name: string, form: FormData) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new SafeTypeError('forEach needs a function.')
    for (let index = 0; index < this.#pairs.length; index++) {
      const [name, value] = this.#pairs[index]!
      callback.call(self, value, name, this)
    }
  }

  entries(): IteratorObject<[string, string]> {
    return pairIterator('FormData', () => this.#pairs, 'entries')
  }

  keys(): IteratorObject<string> {
    return pairIterator('FormData', () => this.#pairs, 'keys')
  }

  values(): IteratorObject<string> {
    return pairIterator('FormData', () => this.#pairs, 'values')
  }

  [Symbol.iterator](): IteratorObject<[string, string]> {
    return this.entries()
  }

  get [Symbol.toStringTag](): string {
    return 'FormData'
  }
}

/** Writes form data as `multipart/form-data`. */
export function multipartOf(form: FormData, boundary: string): string {
  const escape = (name: string): string => name.replace(/\r\n|\r|\n/g, '%0D%0A').replaceAll('"', '%22')
  let body = ''
  for (const [name, value] of form) {
    body += `--${boundary}\r\nContent-Disposition: form-data; name="${escape(name)}"\r\n\r\n${value.replace(/\r\n|\r|\n/g, '\r\n')}\r\n`
  }
  return `${body}--${boundary}--\r\n`
}
