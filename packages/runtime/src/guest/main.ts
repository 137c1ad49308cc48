import type { GuestEntries } from '../bridge.ts'
import { startEntropy } from './crypto.ts'
import { entries } from './entries.ts'
import { installGlobals } from './globals.ts'
import { connectBridge } from './port.ts'
import { startClock } from './time/clock.ts'

/** Makes a bare context into the world of a function. */
export function boot(names: string, ...functions: unknown[]): GuestEntries {
  connectBridge(names, functions)
  startClock()
  startEntropy()
  installGlobals()
  return entries
}
