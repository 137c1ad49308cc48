/**
 * Turns a job into one that never runs twice at once: asked while it runs, it runs once more afterwards, however often it was asked.
 * @param job must not reject
 * @returns asks for a run; resolves when the job rests
 */
export function coalesce(job: () => Promise<void>): () => Promise<void> {
  let wanted = false
  let running: Promise<void> | undefined
  const runWhileWanted = async (): Promise<void> => {
    while (wanted) {
      wanted = false
      await job()
    }
    running = undefined
  }
  return () => {
    wanted = true
    running ??= runWhileWanted()
    return running
  }
}
