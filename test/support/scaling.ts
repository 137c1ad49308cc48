/** What the tests of how hosts follow the CPU have in common. */
import type { HostInfo } from '@carpool/core'

/** Works for about 10 ms. */
export const WORK = `
  export default {
    fetch() {
      let sum = 0
      for (let number = 0; number < 5_000_000; number++) sum += Math.sqrt(number)
      return new Response(String(sum))
    }
  }`
export const SLEEP = `export default { async fetch() { await new Promise((resolve) => setTimeout(resolve, 300)); return new Response('woke') } }`
/** Tells what is due soon, so that a test need not wait for it. */
export const QUICK = ['--panic-window-ms', '250', '--saturation-window-ms', '1000', '--machine-full-percent', '100']

/** Hosts that take calls, or would if they had room. */
export function serving(hosts: readonly HostInfo[]): HostInfo[] {
  return hosts.filter(({ state }) => state === 'ready' || state === 'saturated')
}
