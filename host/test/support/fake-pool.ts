import { IsolatePool, type Poolable } from '../../src/isolates/isolate-pool.ts'

export const MB = 1024 * 1024

export class FakeIsolate implements Poolable {
  readonly revision: string
  disposed = false
  hasBackgroundWork = false
  heapBytes: number
  constructor(revision: string, heapBytes = 2 * MB) {
    this.revision = revision
    this.heapBytes = heapBytes
  }
  dispose(): void {
    this.disposed = true
  }
}

/** A pool of fakes, which are loaded at once, with all that it made. */
export function poolOf(maxIsolates: number): { pool: IsolatePool<FakeIsolate>; made: FakeIsolate[] } {
  const made: FakeIsolate[] = []
  const pool = new IsolatePool<FakeIsolate>({
    load: async (revision) => {
      const fake = new FakeIsolate(revision)
      made.push(fake)
      return fake
    },
    maxIsolates,
    lingerMs: 60_000,
  })
  return { pool, made }
}
