import { getPrototypeOf, SafeSet } from './primordials.ts'

const prototypes = new SafeSet<object>()

/** Marks the objects of a class as web API objects, which structuredClone refuses. */
export function markPlatformClass(constructor: { prototype: object }): void {
  prototypes.add(constructor.prototype)
}

export function isPlatformObject(value: object): boolean {
  let prototype = getPrototypeOf(value)
  for (let steps = 0; prototype !== null && steps < 100; steps++) {
    if (prototypes.has(prototype)) return true
    prototype = getPrototypeOf(prototype)
  }
  return false
}
