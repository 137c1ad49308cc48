/** How a process ended, as its parent sees it. */
export interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

/** What V8, the C library and the processor end a process with. A plain SIGKILL is somebody else's doing: an operator's, or ours. */
const CRASH_SIGNALS: ReadonlyMap<NodeJS.Signals, number> = new Map([
  ['SIGILL', 4],
  ['SIGTRAP', 5],
  ['SIGABRT', 6],
  ['SIGBUS', 7],
  ['SIGFPE', 8],
  ['SIGSEGV', 11],
])
const SIGNALED = 128

/** Whether code in the process brought it down. A parent in between tells a signal as an exit code. */
export function isCrash({ exitCode, signal }: ProcessEnd): boolean {
  if (signal !== null) return CRASH_SIGNALS.has(signal)
  return exitCode !== null && CRASH_SIGNALS.values().some((number) => exitCode === SIGNALED + number)
}

/**
 * Whose code may have brought a process down.
 * @param inLongEntries functions with an entry that had run for a while: to fill a heap takes a while, so one of them did it if there are any
 * @param running functions of whose invocations some were running, rather than waiting
 */
export function suspectsOf(
  end: ProcessEnd,
  { inLongEntries, running }: { readonly inLongEntries: Iterable<string>; readonly running: Iterable<string> },
): string[] {
  if (!isCrash(end)) return []
  const long = new Set(inLongEntries)
  return [...(long.size > 0 ? long : new Set(running))]
}
