import { markPlatformClass } from '../web-api/brands.ts'

// User code may have changed how arrays are iterated, and what all objects inherit, by the time that a library is loaded.
const UNTOUCHED: Readonly<Record<string, boolean>> = {
  __proto__: null as never,
  constructor: true,
  length: true,
  name: true,
  prototype: true,
}
const ENUMERABLE: PropertyDescriptor = { __proto__: null, enumerable: true } as PropertyDescriptor

const named = (value: string): PropertyDescriptor => ({ __proto__: null, value, configurable: true }) as PropertyDescriptor

/** Gives the members of classes the form that WebIDL has them in: enumerable. Has structuredClone refuse their objects. */
export function asInterfaces(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  const names = Object.keys(classes)
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!
    const one = classes[name]!
    // The bundler renames what refers to itself.
    Object.defineProperty(one, 'name', named(name))
    showMembers(one)
    showMembers(one.prototype)
    markPlatformClass(name, one)
    Object.defineProperty(one.prototype, Symbol.toStringTag, named(name))
  }
}

function showMembers(target: object): void {
  const keys = Reflect.ownKeys(target)
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    if (typeof key === 'string' && UNTOUCHED[key] !== true) Object.defineProperty(target, key, ENUMERABLE)
  }
}

/** The options of WebIDL: an object, or nothing. @throws TypeError for anything else */
export function optionsOf<T extends object>(given: T | null | undefined, what: string): Partial<T> {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object' && typeof given !== 'function') throw new TypeError(`${what} must be an object.`)
  return given
}
