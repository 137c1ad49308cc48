import { isDate, isMap, isNativeError, isPromise, isRegExp, isSet, isTypedArray } from './util-types.ts'

interface InspectOptions {
  readonly depth?: number | null
  readonly breakLength?: number
  readonly showHidden?: boolean
  readonly colors?: boolean
}

interface Walk {
  readonly depth: number
  readonly breakLength: number
  /** Objects that are being shown further out. */
  readonly seen: object[]
  readonly circular: Set<object>
}

const CUSTOM = Symbol.for('nodejs.util.inspect.custom')
const MOST_ENTRIES = 100
const DEFAULT_BREAK_LENGTH = 72

export function inspect(value: unknown, options: InspectOptions = {}): string {
  const { depth = 2, breakLength = DEFAULT_BREAK_LENGTH } = options
  return show(value, { depth: depth ?? Number.POSITIVE_INFINITY, breakLength, seen: [], circular: new Set() })
}
inspect.custom = CUSTOM
inspect.defaultOptions = { depth: 2, breakLength: DEFAULT_BREAK_LENGTH }

/** printf-like: %s %d %i %f %j %o %O %c %%; what is left over follows after spaces. */
export function format(...args: unknown[]): string {
  const [template, ...rest] = args
  if (typeof template !== 'string') return args.map(asText).join(' ')
  if (rest.length === 0) return template
  const text = template.replace(/%([sdifjoOc%])/g, (whole, kind: string) => {
    if (kind === '%') return '%'
    if (rest.length === 0) return whole
    const value = rest.shift()
    switch (kind) {
      case 's':
        return typeof value === 'string' ? value : inspect(value, { depth: 0 })
      case 'd':
        return typeof value === 'bigint' ? `${value}n` : typeof value === 'object' ? 'NaN' : String(Number(value))
      case 'i':
        return typeof value === 'bigint' ? `${value}n` : String(Number.parseInt(String(value), 10))
      case 'f':
        return String(Number.parseFloat(String(value)))
      case 'j':
        return toJson(value)
      case 'c':
        return ''
      default:
        return inspect(value, { depth: 4 })
    }
  })
  return [text, ...rest.map(asText)].join(' ')
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value)
}

function toJson(value: unknown): string {
  try {
    return `${JSON.stringify(value) as string | undefined}`
  } catch (error) {
    if (error instanceof TypeError && error.message.includes('circular')) return '[Circular]'
    throw error
  }
}

function show(value: unknown, walk: Walk): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'bigint') return `${value}n`
  if (Object.is(value, -0)) return '-0'
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return String(value)
  const custom = (value as { [CUSTOM]?: unknown })[CUSTOM]
  if (typeof custom === 'function' && custom !== inspect) {
    const shown: unknown = custom.call(value, walk.depth - walk.seen.length, { depth: walk.depth }, inspect)
    if (shown !== value) return typeof shown === 'string' ? shown : show(shown, walk)
  }
  if (walk.seen.includes(value)) {
    walk.circular.add(value)
    return '[Circular *1]'
  }
  const { lead, entries, brackets } = describe(value, walk)
  if (entries === undefined) return walk.seen.length === 0 || lead.startsWith('[') ? lead : `[${lead}]`
  if (entries.length === 0 && brackets === undefined) return lead
  const [open, close] = brackets ?? ['{', '}']
  const mark = walk.circular.has(value) ? '<ref *1> ' : ''
  const head = mark + (lead === '' ? '' : `${lead} `)
  if (entries.length === 0) return `${head}${open}${close}`
  const indent = '  '.repeat(walk.seen.length + 1)
  const line = `${head}${open} ${entries.join(', ')} ${close}`
  const short = line.length + indent.length <= walk.breakLength && !line.includes('\n')
  return short ? line : `${head}${open}\n${entries.map((entry) => indent + entry).join(',\n')}\n${indent.slice(2)}${close}`
}

interface Described {
  readonly lead: string
  /** Absent: too deep to be shown. */
  readonly entries?: readonly string[]
  readonly brackets?: readonly [string, string]
}

function describe(value: object, walk: Walk): Described {
  const name = nameOf(value)
  const nested = (item: unknown): string => show(item, walk)
  const items = (label: string, size: number, list: () => Iterable<string>, brackets: readonly [string, string]): Described => {
    const properties = propertiesOf(value, Array.isArray(value) || isTypedArray(value))
    if (walk.seen.length > walk.depth && (size > 0 || properties.length > 0)) return { lead: `[${name}]` }
    walk.seen.push(value)
    const entries = [...limited(list()), ...properties.map(([key, property]) => `${key}: ${property(nested)}`)]
    walk.seen.pop()
    return { lead: label, entries, brackets }
  }
  if (isNativeError(value)) {
    const error = value as Error
    return {
      lead: error.stack ?? String(error),
      entries: propertiesOf(value, false).map(([key, property]) => `${key}: ${property(nested)}`),
    }
  }
  if (isRegExp(value)) return { lead: RegExp.prototype.toString.call(value), entries: [] }
  if (isDate(value))
    return { lead: Number.isNaN((value as Date).getTime()) ? 'Invalid Date' : (value as Date).toISOString(), entries: [] }
  if (typeof value === 'function') return { lead: describeFunction(value), entries: [] }
  if (isPromise(value)) return { lead: 'Promise', entries: ['<unknown>'] }
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value
    const label = name === 'Array' ? '' : `${name}(${list.length})`
    return items(label, list.length, () => Array.from(list.slice(0, MOST_ENTRIES + 1), nested), ['[', ']'])
  }
  if (isTypedArray(value)) {
    const list = value as Uint8Array
    return items(`${name}(${list.length})`, list.length, () => Array.from(list.subarray(0, MOST_ENTRIES + 1), nested), ['[', ']'])
  }
  if (isMap(value)) {
    const map = value as Map<unknown, unknown>
    const list = (): string[] => [...map].map(([key, item]) => `${nested(key)} => ${nested(item)}`)
    return items(`${name}(${map.size})`, map.size, list, ['{', '}'])
  }
  if (isSet(value)) {
    const set = value as Set<unknown>
    return items(`${name}(${set.size})`, set.size, () => [...set].map(nested), ['{', '}'])
  }
  return items(name === 'Object' ? '' : name, 0, () => [], ['{', '}'])
}

function nameOf(value: object): string {
  const prototype = Object.getPrototypeOf(value) as { readonly constructor?: { readonly name?: string } } | null
  return prototype === null ? '[Object: null prototype]' : prototype.constructor?.name || 'Object'
}

function describeFunction({ name }: { readonly name: string }): string {
  return name === '' ? '[Function (anonymous)]' : `[Function: ${name}]`
}

/** Own enumerable properties, getters unread. */
function propertiesOf(
  value: object,
  isList: boolean,
): Array<readonly [key: string, show: (nested: (item: unknown) => string) => string]> {
  return Reflect.ownKeys(value).flatMap((key) => {
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (property === undefined || !property.enumerable) return []
    if (isList && typeof key === 'string' && /^\d+$/.test(key)) return []
    const label = typeof key === 'symbol' ? `[${String(key)}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key)
    const accessor = property.get ? (property.set ? '[Getter/Setter]' : '[Getter]') : '[Setter]'
    return [[label, (nested) => ('value' in property ? nested(property.value) : accessor)] as const]
  })
}

function* limited(entries: Iterable<string>): Generator<string> {
  let count = 0
  for (const entry of entries) {
    count += 1
    if (count > MOST_ENTRIES) {
      yield '... more items'
      return
    }
    yield entry
  }
}

function quote(text: string): string {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') ? '`' : "'"
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark
}
