import { setTimeout as wait } from 'node:timers/promises'

/** Shows something again and again until it is stopped; the first time at once. @throws what `show` throws */
export async function watch(show: () => Promise<void>, intervalMs: number, stopped: Promise<unknown>): Promise<void> {
  const controller = new AbortController()
  void stopped.then(() => controller.abort())
  const { signal } = controller
  while (!signal.aborted) {
    await show()
    await wait(intervalMs, undefined, { signal }).catch(() => {})
  }
}
