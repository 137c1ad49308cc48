import { InvalidArgumentError } from 'commander'

/** Reads a whole number within a range. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

/** Collects `KEY=value` from an option that may be repeated. */
export function variables(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, key, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError('It must have the form KEY=value, with a key of letters, digits and "_".')
  return { ...before, [key]: value }
}

/** Collects `name: value` from an option that may be repeated. */
export function headers(
  text: string,
  before: ReadonlyArray<readonly [string, string]> = [],
): ReadonlyArray<readonly [string, string]> {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*([^\r\n]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must have the form "name: value".')
  return [...before, [name.toLowerCase(), value.trimEnd()]]
}

/** Collects the values of an option that may be repeated. */
export function texts(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
