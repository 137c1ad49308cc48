import { stringToWellFormed } from './primordials.ts'

/** What WebIDL calls DOMString: a symbol throws a TypeError, anything else becomes text. */
export function toText(value: unknown): string {
  // oxlint-disable-next-line typescript/no-unnecessary-template-expression -- the value need not be a string
  return typeof value === 'string' ? value : `${value as string}`
}

/** What WebIDL calls USVString: text whose surrogates all have a partner. */
export function toScalarText(value: unknown): string {
  return stringToWellFormed(toText(value))
}

/** What WebIDL calls a number: a symbol or a BigInt throws a TypeError. */
export function toNumber(value: unknown): number {
  // oxlint-disable-next-line typescript/no-unnecessary-type-conversion -- the value need not be a number
  return +(value as number)
}
