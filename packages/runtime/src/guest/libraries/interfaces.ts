import { markPlatformClass } from '../web-api/brands.ts'

const UNTOUCHED = new Set(['constructor', 'length', 'name', 'prototype'])
const ENUMERABLE = { enumerable: true }

/** Gives the members of classes the form that WebIDL has them in: enumerable. Has structuredClone refuse their objects. */
export function asInterfaces(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, one] of Object.entries(classes)) {
    // The bundler renames what refers to itself.
    Object.defineProperty(one, 'name', { value: name, configurable: true })
    for (const target of [one, one.prototype]) {
      for (const key of Reflect.ownKeys(target)) {
        if (typeof key === 'string' && !UNTOUCHED.has(key)) Object.defineProperty(target, key, ENUMERABLE)
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
