import {
  arrayBufferByteLength,
  bigIntValueOf,
  booleanValueOf,
  dateGetTime,
  getPrototypeOf,
  mapSize,
  numberValueOf,
  objectToString,
  regExpSource,
  SafeMap,
  setSize,
  stringSlice,
  stringValueOf,
  symbolValueOf,
  weakMapHas,
  weakSetHas,
} from '../language/primordials.ts'

export type Brand =
  | 'Date'
  | 'RegExp'
  | 'Map'
  | 'Set'
  | 'WeakMap'
  | 'WeakSet'
  | 'ArrayBuffer'
  | 'Boolean'
  | 'Number'
  | 'String'
  | 'BigInt'
  | 'Symbol'

const probes = {
  __proto__: null,
  Date: dateGetTime,
  RegExp: regExpSource,
  Map: mapSize,
  Set: setSize,
  WeakMap: (value: unknown) => weakMapHas(value, probes),
  WeakSet: (value: unknown) => weakSetHas(value, probes),
  ArrayBuffer: arrayBufferByteLength,
  Boolean: booleanValueOf,
  Number: numberValueOf,
  String: stringValueOf,
  BigInt: bigIntValueOf,
  Symbol: symbolValueOf,
} as unknown as Record<string, ((value: never) => unknown) | undefined>

/**
 * The built-in class that an object truly is, by its internal slots; undefined for anything else. `Symbol.toStringTag` only says
 * where to look, so an object cannot pass for what it is not.
 */
export function brandOf(value: object): Brand | undefined {
  const tag = stringSlice(objectToString(value), 8, -1)
  const probe = probes[tag]
  if (probe === undefined) return undefined
  try {
    probe(value as never)
    return tag as Brand
  } catch {
    return undefined
  }
}

const classNames = new SafeMap<object, string>()

/** Marks the objects of a class as web API objects, which structuredClone refuses. */
export function markPlatformClass(name: string, constructor: { prototype: object }): void {
  classNames.set(constructor.prototype, name)
}

/** The name of the web API class that an object is of; undefined for any other object. */
export function platformClassOf(value: object): string | undefined {
  let prototype = getPrototypeOf(value)
  for (let steps = 0; prototype !== null && steps < 100; steps++) {
    const name = classNames.get(prototype)
    if (name !== undefined) return name
    prototype = getPrototypeOf(prototype)
  }
  return undefined
}
