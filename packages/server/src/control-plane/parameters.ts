import { CarpoolError } from '@carpool/core'
import { oneOf } from '@carpool/core/control-plane-schemas'
import { Type } from '@carpool/core/schema'
import type { TSchema } from 'typebox'
import { NAME_PATTERN } from './schemas.ts'

/** A parameter of a query string. */
export interface Parameter<T> {
  /** For the OpenAPI document. */
  readonly schema: TSchema
  /** @param text undefined: it is not given. @throws CarpoolError `bad-request`, naming the parameter */
  readonly read: (name: string, text: string | undefined) => T
}

type ValuesOf<P extends Readonly<Record<string, Parameter<unknown>>>> = { [K in keyof P]: ReturnType<P[K]['read']> }

/**
 * Reads a query string that has only these parameters, each once at most.
 * @throws CarpoolError `bad-request`, naming the parameter
 */
export function readQuery<P extends Readonly<Record<string, Parameter<unknown>>>>(
  parameters: P,
  query: Readonly<Record<string, unknown>>,
): ValuesOf<P> {
  for (const [key, value] of Object.entries(query)) {
    if (!Object.hasOwn(parameters, key)) {
      throw badParameter(`There is no parameter ${JSON.stringify(key)}: there are ${Object.keys(parameters).join(', ')}.`)
    }
    if (typeof value !== 'string') throw badParameter(`The parameter ${key} may be given only once.`)
  }
  const values = Object.entries(parameters).map(([name, { read }]) => [name, read(name, query[name] as string | undefined)])
  return Object.fromEntries(values) as ValuesOf<P>
}

export function textParameter(schema: { pattern?: string; description?: string } = {}): Parameter<string | undefined> {
  return { schema: Type.Optional(Type.String(schema)), read: (_name, text) => text }
}

export function limitParameter(max: number, fallback: number): Parameter<number> {
  return {
    schema: Type.Optional(Type.Integer({ minimum: 0, maximum: max, default: fallback })),
    read: (name, text) => (text === undefined ? fallback : wholeNumber(name, text, max)),
  }
}

export function flagParameter(description: string): Parameter<boolean> {
  return {
    schema: Type.Optional(Type.Boolean({ default: false, description })),
    read: (name, text = 'false') => choice(name, text, ['true', 'false']) === 'true',
  }
}

export function choiceParameter<T extends string>(choices: readonly T[], fallback: T): Parameter<T> {
  return {
    schema: Type.Optional(Type.Unsafe<T>({ ...oneOf(choices), default: fallback })),
    read: (name, text = fallback) => choice(name, text, choices),
  }
}

const TIMES = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
export const SINCE: Parameter<number | undefined> = {
  schema: Type.Optional(Type.Integer({ ...TIMES, description: 'In ms of the epoch.' })),
  read: (name, text) => (text === undefined ? undefined : wholeNumber(name, text, TIMES.maximum)),
}

export const OWNER = textParameter({
  pattern: NAME_PATTERN,
  description: 'For admins: whose. Others see, and act for, the owner of their token alone.',
})

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text)
  if (/^\d{1,16}$/.test(text) && value <= max) return value
  throw badParameter(`The parameter ${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(text)}.`)
}

function choice<T extends string>(name: string, text: string, choices: readonly T[]): T {
  if ((choices as readonly string[]).includes(text)) return text as T
  throw badParameter(`The parameter ${name} must be ${choices.join(' or ')}, not ${JSON.stringify(text)}.`)
}

function badParameter(detail: string): CarpoolError {
  return new CarpoolError('bad-request', detail)
}

/** The object without what is undefined in it. */
export function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as ReturnType<typeof defined<T>>
}
