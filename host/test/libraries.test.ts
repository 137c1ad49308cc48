/** The scripts that a process keeps for its isolates, and what a guest is told of promises. */
import t from 'tap'
import { Bootstrap, GuestIsolate } from '../src/isolates/guest-isolate.ts'
import { isolateWith } from './support/isolate.ts'

t.test('a library runs in the isolate that asks for it, each time and in each isolate', async (t) => {
  for (const _ of [1, 2, 3]) {
    const { run } = await isolateWith(t)
    t.equal(await run(`library(1, 'given')`), 'one,given,1')
    t.equal(await run(`library(1, 'again')`), 'one,again,2')
    t.equal(await run(`try { library(2) } catch (error) { error.message }`), 'broken')
    t.equal(await run(`[99, -1, 'a', undefined].map((index) => library(index)).join()`), ',,,')
  }
})

t.test('what a library takes is on the bill of the entry that loads it', async (t) => {
  const { batch, entryCpuNs } = await isolateWith(t)
  await batch('1', `for (let index = 0; index < 1000; index++) library(1)`, '1')
  const [before, loading, after] = entryCpuNs()
  t.ok(loading! > 3 * (before! + after!), `${before}, ${loading}, ${after} ns`)
})

t.test('scripts that cannot be kept are refused', (t) => {
  t.throws(() => new Bootstrap('(function () { return "€" })'), { message: 'The scripts of the runtime cannot be kept.' })
  t.end()
})

t.test('a runtime that does not compile is an error', async (t) => {
  const options = { callbacks: {}, memoryLimitMb: 32, onCatastrophe: (reason: string) => t.fail(reason) }
  await t.rejects(GuestIsolate.create({ ...options, bootstrap: new Bootstrap('(function () {') }), { name: 'SyntaxError' })
})

t.test(
  'a promise that is rejected and not awaited is told when its entry has run, and when it is awaited after all',
  async (t) => {
    const { run } = await isolateWith(t)
    const heard = (): Promise<string | undefined> => run(`JSON.stringify(rejections.splice(0))`)
    await run(`Promise.reject(1); globalThis.kept = Promise.reject(2); Promise.reject(3).catch(() => {})`)
    t.equal(await heard(), '[1,2,3,"handled","settled"]')
    await run(`kept.catch(() => {})`)
    t.equal(await heard(), '["handled"]')
    await run(`(async () => { try { await Promise.reject(4) } catch {} })()`)
    t.equal(await heard(), '[4,"handled","settled"]')
    t.equal(await heard(), '[]')
  },
)
