/** A module some of whose names are loaded when one of them is first read. */
export function lazily(
  values: Readonly<Record<string, unknown>>,
  names: readonly string[],
  load: () => object,
): Record<string, unknown> {
  const module: Record<string, unknown> = { ...values }
  for (const name of names) {
    const settle = (value: unknown): void => {
      Object.defineProperty(module, name, { value, writable: true, enumerable: true, configurable: true })
    }
    Object.defineProperty(module, name, {
      get: () => {
        const value = (load() as Record<string, unknown>)[name]
        settle(value)
        return value
      },
      set: settle,
      enumerable: true,
      configurable: true,
    })
  }
  return module
}
