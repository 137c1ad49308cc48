import { toText } from '../../language/values.ts'
import { asInterfaces } from '../interfaces.ts'
import { Blob, type File, fileOf, isBlob } from './blob.ts'

export type FormEntry = [name: string, value: string | File]

export let isFormData: (value: unknown) => value is FormData
/** Form data with the given entries. */
export let formDataOf: (entries: FormEntry[]) => FormData
/** The entries, in order. Do not change them. */
export let entriesOf: (form: FormData) => readonly FormEntry[]

/** Sees changes that are made meanwhile, as WebIDL says. */
class FormIterator<T> extends Iterator<T, undefined> {
  readonly #read: () => readonly FormEntry[]
  readonly #pick: (entry: FormEntry) => T
  #index = 0

  constructor(read: () => readonly FormEntry[], pick: (entry: FormEntry) => T) {
    super()
    this.#read = read
    this.#pick = pick
  }

  next(): IteratorResult<T, undefined> {
    const entry = this.#read()[this.#index++]
    return entry === undefined ? { value: undefined, done: true } : { value: this.#pick(entry), done: false }
  }

  override get [Symbol.toStringTag](): string {
    return 'FormData Iterator'
  }
}

Object.defineProperty(FormIterator.prototype, 'next', { enumerable: true })
delete (FormIterator.prototype as { constructor?: unknown }).constructor

export class FormData {
  #entries: FormEntry[] = []

  static {
    isFormData = (value): value is FormData => typeof value === 'object' && value !== null && #entries in value
    formDataOf = (entries) => {
      const form = new FormData()
      form.#entries = entries
      return form
    }
    entriesOf = (form) => form.#entries
  }

  constructor(form?: undefined) {
    if (form !== undefined) throw new TypeError('There are no form elements here that FormData could take.')
  }

  append(name: unknown, value: unknown, filename?: unknown): void {
    requireArguments(arguments.length, 2)
    this.#entries.push(entryOf(name, value, filename, arguments.length > 2))
  }

  delete(name: unknown): void {
    requireArguments(arguments.length, 1)
    const key = scalar(name)
    this.#entries = this.#entries.filter((entry) => entry[0] !== key)
  }

  get(name: unknown): string | File | null {
    requireArguments(arguments.length, 1)
    const key = scalar(name)
    return this.#entries.find((entry) => entry[0] === key)?.[1] ?? null
  }

  getAll(name: unknown): Array<string | File> {
    requireArguments(arguments.length, 1)
    const key = scalar(name)
    return this.#entries.filter((entry) => entry[0] === key).map((entry) => entry[1])
  }

  has(name: unknown): boolean {
    requireArguments(arguments.length, 1)
    const key = scalar(name)
    return this.#entries.some((entry) => entry[0] === key)
  }

  set(name: unknown, value: unknown, filename?: unknown): void {
    requireArguments(arguments.length, 2)
    const entry = entryOf(name, value, filename, arguments.length > 2)
    const first = this.#entries.findIndex(([key]) => key === entry[0])
    if (first === -1) this.#entries.push(entry)
    else this.#entries = this.#entries.filter(([key], index) => index <= first || key !== entry[0]).with(first, entry)
  }

  forEach(callback: (value: string | File, name: string, form: FormData) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new TypeError('forEach needs a function.')
    for (const [name, value] of this) Reflect.apply(callback, self, [value, name, this])
  }

  entries(): IteratorObject<FormEntry> {
    return iterate(
      () => this.#entries,
      ([name, value]): FormEntry => [name, value],
    )
  }

  keys(): IteratorObject<string> {
    return iterate(
      () => this.#entries,
      ([name]) => name,
    )
  }

  values(): IteratorObject<string | File> {
    return iterate(
      () => this.#entries,
      ([, value]) => value,
    )
  }

  [Symbol.iterator](): IteratorObject<FormEntry> {
    return this.entries()
  }
}

asInterfaces({ FormData })
Object.defineProperty(FormData.prototype, Symbol.iterator, {
  // oxlint-disable-next-line typescript/unbound-method -- they are one function
  value: FormData.prototype.entries,
  writable: true,
  configurable: true,
})

function iterate<T>(read: () => readonly FormEntry[], pick: (entry: FormEntry) => T): IteratorObject<T> {
  return new FormIterator(read, pick)
}

function requireArguments(given: number, needed: number): void {
  if (given < needed) throw new TypeError(`${needed} ${needed === 1 ? 'argument is' : 'arguments are'} needed.`)
}

function scalar(value: unknown): string {
  return toText(value).toWellFormed()
}

function entryOf(name: unknown, value: unknown, filename: unknown, hasFilename: boolean): FormEntry {
  if (isBlob(value)) return [scalar(name), fileOf(value, hasFilename && filename !== undefined ? scalar(filename) : undefined)]
  if (hasFilename) throw new TypeError(`Only a ${Blob.name} can have a file name.`)
  return [scalar(name), scalar(value)]
}
