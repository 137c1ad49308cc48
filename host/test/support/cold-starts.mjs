/**
 * Loads code in an isolate without a code cache, makes its cache, and loads it with that in another, while V8 writes down which
 * functions it compiles: `node --log-function-events --logfile=<folder>/log cold-starts.mjs`. V8 has a file for each isolate.
 */
import { Bootstrap, CodeCache, GuestIsolate } from '../../src/isolates/guest-isolate.ts'

const CODE = {
  source: `(function moduleScope() {
  function ranInModuleScope() { return neverRan.name.length }
  function neverRan() { return 1 }
  return ranInModuleScope()
})`,
  filename: 'function-under-test.js',
}
const CORE = `(function () {
  return { rejected() {}, dispatch() {}, load(argument, factory) { factory() } }
})`

const make = () =>
  GuestIsolate.create({ bootstrap: new Bootstrap(CORE), callbacks: {}, memoryLimitMb: 32, onCatastrophe: console.error })

const first = await make()
await first.load('', CODE)
const made = await first.makeCodeCache(CODE)
const second = await make()
const isTaken = await second.load('', { ...CODE, codeCache: new CodeCache(made) })
console.log(JSON.stringify({ isTaken }))
// A natural end may abort, as isolated-vm is torn down then.
process.exit()
