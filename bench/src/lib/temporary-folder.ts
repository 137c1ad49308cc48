import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const present = new Set<string>()
// A bench that is stopped or fails leaves nothing behind either.
process.once('exit', () => {
  for (const path of present) rmSync(path, { recursive: true, force: true })
})

/** A new folder that is removed with all that is in it. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'carpool-bench-'))
  present.add(path)
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await rm(path, { recursive: true, force: true })
      present.delete(path)
    },
  }
}
