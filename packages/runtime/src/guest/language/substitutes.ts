// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import {
  defineProperty,
  functionToString,
  getOwnPropertyDescriptor,
  ownKeys,
  ownValue,
  SafeWeakMap,
  setHidden,
} from './primordials.ts'

/** What they took the place of. */
const originals = new SafeWeakMap<object, Function>()

/**
 * Makes a function that takes the place of one of the language's own look like it: by name, length, and what
 * `Function.prototype.toString` gives for it.
 */
export function lookLike<F extends Function>(substitute: F, original: Function): F {
  defineFixed(substitute, 'length', ownValue(original, 'length'))
  defineFixed(substitute, 'name', ownValue(original, 'name'))
  originals.set(substitute, original)
  return substitute
}

/**
 * Puts a constructor in the place of one of the language's own: it gets all properties of that one, and is the `constructor` of
 * its instances.
 */
export function takePlaceOf<F extends Function>(substitute: F, original: Function): F {
  const keys = ownKeys(original)
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    // `length` and `name` are set with the looks.
    if (key !== 'length' && key !== 'name') defineProperty(substitute, key, getOwnPropertyDescriptor(original, key)!)
  }
  setHidden(original.prototype as object, 'constructor', substitute)
  return lookLike(substitute, original)
}

function defineFixed(target: object, key: string, value: unknown): void {
  defineProperty(target, key, {
    __proto__: null,
    value,
    writable: false,
    enumerable: false,
    configurable: true,
  } as PropertyDescriptor)
}

const { prototype } = Function

/** Replaces `Function.prototype.toString` by one that knows the substitutes. */
export function installNativeLook(): void {
  const { toString } = {
    toString(this: object): string {
      // A primitive is no key, and is refused by the function itself.
      const original = typeof this === 'function' ? originals.get(this) : undefined
      return functionToString(original ?? this)
    },
  }
  setHidden(prototype, 'toString', lookLike(toString, prototype.toString))
}
