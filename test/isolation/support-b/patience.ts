import type { Test } from 'tap'

/** What has not come after as long as this will not come any more, in ms: far longer than any limit that the cases set. */
const PATIENCE_MS = 20_000
const ASK_AGAIN_MS = 10

/** Asserts that something comes, and goes on without it if it does not. */
export async function comes(t: Test, what: string, coming: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const never = new Promise<false>((resolve) => (timer = setTimeout(resolve, PATIENCE_MS, false)))
  t.ok(await Promise.race([coming.then(() => true), never]), what)
  clearTimeout(timer)
}

/**
 * The same of what another process brings about, for which one has to ask again and again. @returns the answer; undefined if it
 * did not come
 */
export async function eventually<T>(
  t: Test,
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T | undefined> {
  for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs; ) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) {
      t.pass(what)
      return answer
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS))
  }
  t.fail(what)
  return undefined
}
