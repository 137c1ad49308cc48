const PAUSE_MS = 25

/** Asks again and again until the answer is yes, but not for ever. @returns whether it was yes in time */
export async function within(patienceMs: number, ask: () => boolean | Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + patienceMs
  while (performance.now() < untilMs) {
    if (await ask()) return true
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return ask()
}
