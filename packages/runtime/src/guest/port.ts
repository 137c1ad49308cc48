import type { GuestBridge } from '../bridge.ts'
import { stringSplit } from './primordials.ts'

/**
 * The bridge, as this context holds it: a module variable that user code cannot reach, for neither a global nor an object that is
 * handed out leads to it.
 */
export let bridge: GuestBridge

/** Takes the callbacks that the host gives to `boot`: `names` says what each is, in order, between commas. */
export function connectBridge(names: string, functions: readonly unknown[]): void {
  const connected = { __proto__: null } as unknown as Record<string, unknown>
  const list = stringSplit(names, ',')
  for (let index = 0; index < list.length; index++) connected[list[index]!] = functions[index]
  bridge = connected as unknown as GuestBridge
}
