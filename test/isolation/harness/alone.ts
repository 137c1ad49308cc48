import { FORM } from './form.ts'
import { quantile, type Neighbour } from './neighbour.ts'

/** The neighbour while nothing else happens. */
export interface Alone {
  /** Of the latest calls. */
  readonly p99Ms: number | undefined
  /** Takes some more, for a machine is not the same all the time. */
  refresh(): Promise<void>
}

/** Calls that the figure is of. */
const KEPT = 500

/** Calls the neighbour for a while; undefined in the short form. */
export async function measureAlone(neighbour: Neighbour): Promise<Alone | undefined> {
  if (!FORM.isFull) return undefined
  let tookMs: number[] = []
  const measure = async (forMs: number): Promise<void> => {
    const watched = neighbour.watch(FORM.probesPerSecond)
    await new Promise((resolve) => setTimeout(resolve, forMs))
    tookMs = [...tookMs, ...(await watched.stop()).tookMs].slice(-KEPT)
  }
  await measure(FORM.aloneMs)
  return {
    get p99Ms() {
      return quantile(tookMs, 0.99)
    },
    refresh: () => measure(FORM.refreshMs),
  }
}
