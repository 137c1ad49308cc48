import { iteratorSymbol, type List, SafeList } from './primordials.ts'

/** Whether WebIDL takes a value for a sequence: what is not, it takes for a record. */
export function isIterable(value: object): value is Iterable<unknown> {
  const method = (value as Record<symbol, unknown>)[iteratorSymbol]
  return method !== undefined && method !== null
}

/** What an iterable of user code gives. The one place that iterates what the runtime did not make: it runs user code, which may throw. */
export function valuesOf<T>(iterable: Iterable<T>): List<T> {
  const values = new SafeList<T>()
  // oxlint-disable-next-line guest/primordials -- how an iterable is iterated is for user code to say
  for (const value of iterable) values[values.length] = value
  return values
}
