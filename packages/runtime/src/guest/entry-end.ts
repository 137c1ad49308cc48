/** The end of an entry: it has run, with all its microtasks, and the next one has not begun. */
import { type List, SafeList, SafePromise } from './language/primordials.ts'
import { bridge, carriedByTimer, carryForTimer, enter, invocationNow } from './port.ts'
import { setImmediate } from './timers.ts'
import { reportUncaught } from './web-api/errors.ts'

/** Something that is done then. */
interface AtEnd {
  flush(): void
}

let atEnd: List<AtEnd> = new SafeList()
let hasEntries = false

/** What modules of Node.js do at the end, in order, and the index of the next of it. */
let callbacks: List<() => void> = new SafeList()
let nextIndex = 0
/** Some of it has run in this entry. */
let isEnding = false

/** Has it flushed at the end of this entry. @throws RangeError where the stack ends: it will not be flushed then */
export function flushAtEnd(what: AtEnd): void {
  // Comes first, as it may throw: a list with something in it means that the end was asked for.
  if (atEnd.length === 0) {
    if (hasEntries) bridge.awaitEnd()
    // The module scope is no entry of a batch.
    else void flushLater()
  }
  atEnd[atEnd.length] = what
}

/**
 * Runs it at the end of this entry, on behalf of whoever runs now. What is asked for while an end runs has an entry of its own.
 */
export function afterEntry(run: () => void): void {
  // Code that connects anew on each close would else never leave the entry. In Node.js, too, what is closed while others close
  // waits for the next turn of the event loop.
  if (isEnding) return void setImmediate(run)
  const invocation = invocationNow()
  const carriedAlong = carriedByTimer()
  if (callbacks.length === 0) flushAtEnd(nextCallback)
  callbacks[callbacks.length] = () => {
    enter(invocation)
    carryForTimer(carriedAlong)
    run()
  }
}

/** From now on all runs in entries, whose ends the addon tells. */
export function expectEntries(): void {
  hasEntries = true
}

/** Which entry runs; the module scope begins one as well. */
export let entryNumber = 0

/** An entry begins. */
export function beginEntry(): void {
  entryNumber++
  isEnding = false
}

/** Part of an entry: it has run, with all its microtasks. */
export function endEntry(): void {
  const leaving = atEnd
  atEnd = new SafeList()
  for (let index = 0; index < leaving.length; index++) {
    try {
      leaving[index]!.flush()
    } catch {
      // It could not even break off, mostly for want of memory. What is behind it leaves all the same.
    }
  }
}

async function flushLater(): Promise<void> {
  await new SafePromise<void>((resolve) => resolve())
  endEntry()
}

/** Runs the next of them. In an entry each is followed by its own microtasks and ticks, as in Node.js. */
const nextCallback: AtEnd = {
  flush() {
    isEnding = true
    const run = callbacks[nextIndex++]!
    if (nextIndex < callbacks.length) flushAtEnd(nextCallback)
    else {
      callbacks = new SafeList()
      nextIndex = 0
    }
    try {
      run()
    } catch (error) {
      reportUncaught(error, 'error at the end of an entry')
    }
  },
}
