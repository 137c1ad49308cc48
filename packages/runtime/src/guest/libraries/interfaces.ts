import { markPlatformClass } from '../web-api/brands.ts'

/** Gives the members of classes the form that WebIDL has them in: enumerable. Has structuredClone refuse their objects. */
export function asInterfaces(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, one] of Object.entries(classes)) {
    // The bundler renames what refers to itself.
    Object.defineProperty(one, 'name', { value: name, configurable: true })
    for (const target of [one, one.prototype]) {
      for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(target))) {
        if (key === 'constructor' || key === 'prototype' || key === 'length' || key === 'name') continue
        if (descriptor.configurable === true) Object.defineProperty(target, key, { enumerable: true })
      }
    }
    markPlatformClass(name, one)
    Object.defineProperty(one.prototype, Symbol.toStringTag, { value: name, configurable: true })
  }
}

/** The options of WebIDL: an object, or nothing. @throws TypeError for anything else */
export function optionsOf<T extends object>(given: T | null | undefined, what: string): Partial<T> {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object' && typeof given !== 'function') throw new TypeError(`${what} must be an object.`)
  return given
}
