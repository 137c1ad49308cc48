// Runs in Node.js and in functions.

/**
 * @param {Readonly<Record<string, () => unknown>>} cases by name; each gives a value that JSON can carry
 * @returns {Promise<Record<string, unknown>>} what each case gives, or the error that it throws
 */
export async function runCases(cases) {
  const results = {}
  for (const [name, run] of Object.entries(cases)) {
    try {
      results[name] = await run()
    } catch (error) {
      results[name] = { thrown: String(error), stack: String(error?.stack) }
    }
  }
  return results
}

/**
 * As JSON, with what JSON leaves out as text.
 * @param {unknown} value
 * @returns {string}
 */
export function asJson(value) {
  return JSON.stringify(value, (_key, one) => {
    if (one === undefined) return '(undefined)'
    if (typeof one === 'number' && !Number.isFinite(one)) return String(one)
    return typeof one === 'bigint' || typeof one === 'symbol' || typeof one === 'function' ? String(one) : one
  })
}
