import {
  apply,
  arrayBufferByteLength,
  arrayJoin,
  bigIntValueOf,
  booleanValueOf,
  dateGetTime,
  dateToISOString,
  functionToString,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  hasOwn,
  isArray,
  isError,
  jsonStringify,
  type List,
  mapForEach,
  mapSize,
  min,
  numberIsNaN,
  numberValueOf,
  objectIs,
  objectToString,
  ownKeys,
  ownValue,
  propertyIsEnumerable,
  regExpExec,
  regExpFlags,
  regExpSource,
  SafeList,
  SafeSet,
  setForEach,
  setSize,
  stringIndexOf,
  stringRepeat,
  stringSlice,
  stringSplit,
  stringStartsWith,
  stringValueOf,
  symbolToString,
  symbolValueOf,
  typedArrayLength,
  viewName,
} from '../../language/primordials.ts'
import { brandOf } from '../brands.ts'

export interface InspectOptions {
  /** How many levels of nested objects are shown. Default 2. */
  readonly depth?: number
}

/** An object's method under this symbol says how to show it, as in Node.js. */
export const customInspect = Symbol.for('nodejs.util.inspect.custom')

const LINE_CHARS = 76
const ITEMS_MAX = 100
const STRING_CHARS = 10_000
/** Once this much is written, what remains is left out. */
const TOTAL_CHARS = 32_768
const SHOWN_OF_ERRORS = new SafeSet<unknown>()
for (const name of ['stack', 'message', 'cause', 'errors']) SHOWN_OF_ERRORS.add(name)
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

const NO_OPTIONS = { __proto__: null } as InspectOptions

interface State {
  readonly depth: number
  readonly path: List<object>
  circular: object | undefined
  written: number
}

/** Shows any value as readable text, much as `util.inspect` of Node.js does. May throw what a proxy trap throws. */
export function inspect(value: unknown, options: InspectOptions = NO_OPTIONS): string {
  return show(value, { depth: options.depth ?? 2, path: new SafeList(), circular: undefined, written: 0 })
}

function show(value: unknown, state: State): string {
  if (typeof value !== 'object' && typeof value !== 'function') return showPrimitive(value)
  if (value === null) return 'null'
  if (state.written > TOTAL_CHARS) return '…'
  for (let index = 0; index < state.path.length; index++) {
    if (state.path[index] === value) {
      state.circular = value
      return '[Circular *1]'
    }
  }
  const level = state.path.length
  state.path[level] = value
  const custom = (value as Record<symbol, unknown>)[customInspect]
  const text = typeof custom === 'function' ? showCustom(value, custom as Inspector, state) : showObject(value, state)
  state.path.length = level
  state.written += min(text.length, STRING_CHARS)
  return state.circular === value ? `<ref *1> ${text}` : text
}

type Inspector = (depth: number, options: object, inspect: unknown) => unknown

function showCustom(value: object, custom: Inspector, state: State): string {
  const shown = apply(custom, value, [state.depth - state.path.length + 1, {}, inspect])
  return typeof shown === 'string' ? shown : shown === value ? showObject(value, state) : show(shown, state)
}

function showPrimitive(value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'symbol') return symbolToString(value)
  return objectIs(value, -0) ? '-0' : `${value as number | boolean | undefined}`
}

function quote(text: string): string {
  const shown = text.length > STRING_CHARS ? stringSlice(text, 0, STRING_CHARS) : text
  const rest = text.length > STRING_CHARS ? `… ${text.length - STRING_CHARS} more characters` : ''
  if (regExpExec(/['\\]|[^ -~\xa0-\ud7ff\ue000-\uffff]/, shown) === null) return `'${shown}'${rest}`
  return stringIndexOf(shown, "'") === -1
    ? `'${arrayJoin(stringSplit(stringSlice(jsonStringify(shown), 1, -1), '\\"'), '"')}'${rest}`
    : jsonStringify(shown) + rest
}

function showKey(key: PropertyKey): string {
  if (typeof key === 'symbol') return symbolToString(key)
  return regExpExec(IDENTIFIER, key as string) === null ? quote(key as string) : (key as string)
}

/** The name of the nearest class in the prototype chain; '' for an object without a prototype. */
function className(value: object): string {
  let holder: object | null = value
  for (let steps = 0; holder !== null && steps < 100; steps++) {
    const constructor = ownValue(holder, 'constructor')
    if (typeof constructor === 'function') {
      const name = ownValue(constructor, 'name')
      if (typeof name === 'string' && name !== '') return name
    }
    holder = getPrototypeOf(holder)
  }
  return ''
}

function showObject(value: object, state: State): string {
  const name = className(value)
  const label = name === '' ? '[Object: null prototype] ' : `${name} `
  if (isError(value)) return showError(value, state)
  if (typeof value === 'function') return withProperties(showFunction(value, name), value, state)
  if (isArray(value)) return showList(name === 'Array' ? '' : `${name}(${value.length}) `, value, value.length, state)
  const view = viewName(value)
  if (view !== undefined) {
    const length = typedArrayLength(value)
    return showList(`${view}(${length}) `, value, length, state)
  }
  switch (brandOf(value)) {
    case 'Date': {
      const time = dateGetTime(value)
      return withProperties(numberIsNaN(time) ? 'Invalid Date' : dateToISOString(value), value, state)
    }
    case 'RegExp':
      return withProperties(`/${regExpSource(value)}/${regExpFlags(value)}`, value, state)
    case 'Map':
      return showMap(`${name}(${mapSize(value)}) `, value, state)
    case 'Set':
      return showSet(`${name}(${setSize(value)}) `, value, state)
    case 'ArrayBuffer':
      return `${label}{ byteLength: ${arrayBufferByteLength(value)} }`
    case 'Boolean':
      return withProperties(`[Boolean: ${booleanValueOf(value)}]`, value, state)
    case 'Number':
      return withProperties(`[Number: ${showPrimitive(numberValueOf(value))}]`, value, state)
    case 'String':
      return `[String: ${quote(stringValueOf(value))}]`
    case 'BigInt':
      return `[BigInt: ${bigIntValueOf(value)}n]`
    case 'Symbol':
      return `[Symbol: ${symbolToString(symbolValueOf(value))}]`
    case 'WeakMap':
    case 'WeakSet':
      return `${label}{ <items unknown> }`
  }
  const tag = stringSlice(objectToString(value), 8, -1)
  const tagged = tag === 'Object' || tag === name ? '' : `[${tag}] `
  return showFields(name === 'Object' && tagged === '' ? '' : label + tagged, value, state)
}

function showFunction(value: object, name: string): string {
  const title = nameOf(value)
  if (stringStartsWith(functionToString(value), 'class')) {
    const parent = nameOf(getPrototypeOf(value)!)
    return `[class ${title || '(anonymous)'}${parent === '' ? '' : ` extends ${parent}`}]`
  }
  return `[${name || 'Function'}${title === '' ? ' (anonymous)' : `: ${title}`}]`
}

function nameOf(value: object): string {
  const name = ownValue(value, 'name')
  return typeof name === 'string' ? name : ''
}

function showError(error: Error, state: State): string {
  const stack: unknown = error.stack
  const base = typeof stack === 'string' && stack !== '' ? stack : `[${className(error) || 'Error'}: ${error.message}]`
  const fields = new SafeList<string>()
  if (hasOwn(error, 'cause')) fields[0] = `[cause]: ${nested(error.cause, state)}`
  const errors = ownValue(error, 'errors')
  if (isArray(errors)) fields[fields.length] = `[errors]: ${nested(errors, state)}`
  addFields(error, state, fields, SHOWN_OF_ERRORS)
  const shown = state.path.length > 1 && stringIndexOf(base, '\n') === -1 ? base : indentRest(base, state)
  return fields.length === 0 ? shown : `${shown} ${braces('{', fields, '}', state)}`
}

function indentRest(text: string, state: State): string {
  const indent = state.path.length - 1
  return indent === 0 ? text : arrayJoin(stringSplit(text, '\n'), `\n${stringRepeat('  ', indent)}`)
}

/** Shows a value within another one, or only its kind if that is deeper than asked for. */
function nested(value: unknown, state: State): string {
  if (typeof value === 'object' && value !== null && state.path.length > state.depth && !isError(value)) {
    return isArray(value) ? '[Array]' : `[${className(value) || 'Object'}]`
  }
  return show(value, state)
}

function showList(label: string, value: object, length: number, state: State): string {
  const items = new SafeList<string>()
  const shown = min(length, ITEMS_MAX)
  let holes = 0
  for (let index = 0; index < shown && state.written < TOTAL_CHARS; index++) {
    if (!hasOwn(value, index)) {
      holes++
      continue
    }
    if (holes > 0) items[items.length] = showHoles(holes)
    holes = 0
    items[items.length] = nested((value as unknown[])[index], state)
  }
  if (holes > 0) items[items.length] = showHoles(holes)
  if (length > shown) items[items.length] = `... ${length - shown} more item${length - shown === 1 ? '' : 's'}`
  if (isArray(value)) addFields(value, state, items, undefined, true)
  return label + braces('[', items, ']', state)
}

function showHoles(count: number): string {
  return `<${count} empty item${count === 1 ? '' : 's'}>`
}

function showMap(label: string, value: object, state: State): string {
  const items = new SafeList<string>()
  let count = 0
  mapForEach(value, (item, key) => {
    if (count++ < ITEMS_MAX) items[items.length] = `${nested(key, state)} => ${nested(item, state)}`
  })
  if (count > ITEMS_MAX) items[items.length] = `... ${count - ITEMS_MAX} more items`
  addFields(value, state, items)
  return label + braces('{', items, '}', state)
}

function showSet(label: string, value: object, state: State): string {
  const items = new SafeList<string>()
  let count = 0
  setForEach(value, (item) => {
    if (count++ < ITEMS_MAX) items[items.length] = nested(item, state)
  })
  if (count > ITEMS_MAX) items[items.length] = `... ${count - ITEMS_MAX} more items`
  addFields(value, state, items)
  return label + braces('{', items, '}', state)
}

function showFields(label: string, value: object, state: State): string {
  return label + braces('{', addFields(value, state, new SafeList()), '}', state)
}

function withProperties(base: string, value: object, state: State): string {
  const fields = addFields(value, state, new SafeList())
  return fields.length === 0 ? base : `${base} ${braces('{', fields, '}', state)}`
}

/** Adds the own enumerable properties. Getters are named, not called. */
function addFields(
  value: object,
  state: State,
  fields: List<string>,
  hidden?: SafeSet<unknown>,
  skipIndices = false,
): List<string> {
  const keys = ownKeys(value)
  let left = 0
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    if (hidden?.has(key) || !propertyIsEnumerable(value, key)) continue
    if (skipIndices && typeof key === 'string' && regExpExec(/^\d+$/, key) !== null) continue
    if (fields.length > ITEMS_MAX || state.written > TOTAL_CHARS) {
      left++
      continue
    }
    const descriptor = getOwnPropertyDescriptor(value, key)
    if (descriptor !== undefined) fields[fields.length] = `${showKey(key)}: ${showProperty(descriptor, state)}`
  }
  if (left > 0) fields[fields.length] = `... ${left} more`
  return fields
}

function showProperty(descriptor: PropertyDescriptor, state: State): string {
  if (hasOwn(descriptor, 'value')) return nested(descriptor.value, state)
  if (descriptor.get === undefined) return '[Setter]'
  return descriptor.set === undefined ? '[Getter]' : '[Getter/Setter]'
}

/** Puts the items on one line if they fit, else on one line each. */
function braces(open: string, items: List<string>, close: string, state: State): string {
  if (items.length === 0) return open + close
  const line = arrayJoin(items, ', ')
  if (line.length + state.path.length * 2 <= LINE_CHARS && stringIndexOf(line, '\n') === -1) return `${open} ${line} ${close}`
  const indent = stringRepeat('  ', state.path.length)
  return `${open}\n${indent}${arrayJoin(items, `,\n${indent}`)}\n${stringSlice(indent, 2)}${close}`
}
