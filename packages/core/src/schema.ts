import type { Type as TypeBox, TSchema } from 'typebox'

type Builders =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'Record'
  | 'String'
  | 'Tuple'
  | 'Unsafe'
type Options = Readonly<Record<string, unknown>>
type Properties = Readonly<Record<string, TSchema>>

const OPTIONAL = new WeakSet<object>()

/**
 * Builds JSON schemas whose types TypeScript knows: TypeBox's functions and types, without its code, which takes 11 MB and
 * 100 ms of CPU to load, for a server that only wants the objects.
 */
export const Type = {
  Array: (items: TSchema, options?: Options) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Options) => ({ type: 'boolean', ...options }),
  Integer: (options?: Options) => ({ type: 'integer', ...options }),
  Literal: (value: unknown, options?: Options) => ({ type: typeof value, const: value, ...options }),
  Number: (options?: Options) => ({ type: 'number', ...options }),
  Object: (properties: Properties, options?: Options) => {
    const required = Object.keys(properties).filter((name) => !OPTIONAL.has(properties[name]!))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
  Optional: (schema: TSchema) => optional(schema),
  Partial: (schema: { properties: Properties; required?: readonly string[] }) => {
    const properties = Object.fromEntries(Object.entries(schema.properties).map(([name, one]) => [name, optional(one)]))
    const { required: _required, ...rest } = { ...schema, properties }
    return rest
  },
  Record: ({ pattern = '^.*$' }: { pattern?: string }, value: TSchema, options?: Options) => ({
    type: 'object',
    patternProperties: { [pattern]: value },
    ...options,
  }),
  String: (options?: Options) => ({ type: 'string', ...options }),
  Tuple: (items: readonly TSchema[], options?: Options) => ({
    type: 'array',
    additionalItems: false,
    items,
    minItems: items.length,
    ...options,
  }),
  Unsafe: (schema: TSchema) => ({ ...schema }),
} as unknown as Pick<typeof TypeBox, Builders>

function optional(schema: TSchema): TSchema {
  const copy = { ...schema }
  OPTIONAL.add(copy)
  return copy
}
