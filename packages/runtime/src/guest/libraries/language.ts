/**
 * Classes of the language that would tell when V8 collects garbage, which is a clock of sorts, and whose callbacks it would run
 * when it likes, on nobody's bill. Here nothing that they hold or watch is ever seen collected, which the language allows.
 */

/** Holds its target for as long as it is there itself. */
export class WeakRef<T extends WeakKey> {
  readonly #target: T

  constructor(target: T) {
    requireTarget(target, 'WeakRef')
    this.#target = target
  }

  deref(): T {
    return this.#target
  }
}

/** Never calls back, and so holds nothing. */
export class FinalizationRegistry {
  constructor(callback: unknown) {
    if (typeof callback !== 'function') throw new TypeError('FinalizationRegistry: cleanup must be callable')
  }

  register(target: unknown, held?: unknown, token?: unknown): void {
    requireTarget(target, 'FinalizationRegistry.prototype.register')
    if (target === held) throw new TypeError('FinalizationRegistry.prototype.register: target and holdings must not be same')
    if (token !== undefined) requireTarget(token, 'unregister token')
  }

  unregister(token: unknown): boolean {
    requireTarget(token, 'unregister token')
    return false
  }
}

for (const [name, one] of Object.entries({ FinalizationRegistry, WeakRef })) {
  Object.defineProperty(one, 'name', { value: name, configurable: true })
  Object.defineProperty(one.prototype, Symbol.toStringTag, { value: name, configurable: true })
}

function requireTarget(target: unknown, what: string): void {
  const isKey =
    (typeof target === 'object' && target !== null) ||
    typeof target === 'function' ||
    (typeof target === 'symbol' && Symbol.keyFor(target) === undefined)
  if (!isKey) throw new TypeError(`Invalid value used in ${what}`)
}
