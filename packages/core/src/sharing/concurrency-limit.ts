/** Runs work, of which at most so much goes on at the same time; the rest waits in the order in which it came. */
export type Limited = <T>(work: () => Promise<T>) => Promise<T>

export function concurrencyLimit(max: number): Limited {
  const waiting: Array<() => void> = []
  let running = 0
  return async (work) => {
    if (running >= max) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      // The permit goes straight to the next in line, so that nobody who comes now gets in before.
      const next = waiting.shift()
      if (next === undefined) running--
      else next()
    }
  }
}

/** The same for each key by itself. */
export type LimitedByKey = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function concurrencyLimitByKey(max: number): LimitedByKey {
  const limits = new Map<string, { readonly limited: Limited; count: number }>()
  return async (key, work) => {
    const limit = limits.get(key) ?? { limited: concurrencyLimit(max), count: 0 }
    limits.set(key, limit)
    limit.count++
    try {
      return await limit.limited(work)
    } finally {
      limit.count--
      if (limit.count === 0) limits.delete(key)
    }
  }
}

/** At most `max` at the same time, and of each owner one, so that nobody takes all. */
export function concurrencyLimitOfOwners(max: number): LimitedByKey {
  const limited = concurrencyLimit(max)
  const limitedByOwner = concurrencyLimitByKey(1)
  return (owner, work) => limitedByOwner(owner, () => limited(work))
}
