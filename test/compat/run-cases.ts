/** Cases by name; each gives a value that JSON can carry. This file runs in Node.js and in functions. */
export type Cases = Readonly<Record<string, () => unknown>>

/** @returns what each case gives, or the error that it throws */
export async function runCases(cases: Cases): Promise<Record<string, unknown>> {
  const results: Record<string, unknown> = {}
  for (const [name, run] of Object.entries(cases)) {
    try {
      results[name] = await run()
    } catch (error) {
      results[name] = { thrown: String(error), stack: String((error as Error).stack) }
    }
  }
  return results
}

/** As JSON, with what JSON leaves out as text. */
export function asJson(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => {
    if (one === undefined) return '(undefined)'
    if (typeof one === 'number' && !Number.isFinite(one)) return String(one)
    return typeof one === 'bigint' || typeof one === 'symbol' || typeof one === 'function' ? String(one) : one
  })
}
