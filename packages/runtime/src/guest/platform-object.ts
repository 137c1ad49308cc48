import { getPrototypeOf, SafeMap } from './primordials.ts'

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
