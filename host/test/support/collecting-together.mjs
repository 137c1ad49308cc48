/**
 * Collects garbage of the host's own again and again while isolates reach their limits: `node --expose-gc --trace-gc
 * collecting-together.mjs`. V8 writes a line for each collection, which begins with the isolate's address.
 */
import { Bootstrap, GuestIsolate } from '../../src/isolates/guest-isolate.ts'

const ISOLATES = 20
const LIMIT_MB = 16
const BOOT = new Bootstrap(`(function () {
  return { rejected() {}, load() {}, dispatch() { const kept = []; for (;;) kept.push({}) } }
})`)

const make = () => GuestIsolate.create({ bootstrap: BOOT, callbacks: {}, memoryLimitMb: LIMIT_MB, onCatastrophe: console.error })
const isolates = await Promise.all(Array.from({ length: ISOLATES }, make))
for (const isolate of isolates) {
  isolate.listen({ batchDone: () => {}, messagesWait: () => {}, grown: () => {} })
  isolate.push(1, 0, '')
  isolate.enter()
}
while (isolates.some(({ isReleased }) => !isReleased)) {
  globalThis.gc()
  await new Promise(setImmediate)
}
// A natural end may abort, as isolated-vm is torn down then.
process.exit()
