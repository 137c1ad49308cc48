/** What isolates had outside of their heaps goes back to the system. The C library keeps what is free for each thread apart. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { isolateWith, type Rig } from './support/isolate.ts'

/** Isolates run on three threads at least. */
const ISOLATES = 4
const HOARD = 'globalThis.kept = []; for (let i = 0; i < 6e5; i++) kept.push(new Temporal.PlainDate(2020, 1, 1)); 1'
/** That takes so much outside of the heap at least, in MiB. */
const HOARD_MB = 45

const residentMb = (): number => process.memoryUsage.rss() / 1024 / 1024

t.test('isolates that had much outside of their heaps leave nothing of it when they are gone', async (t) => {
  const beforeMb = residentMb()
  for (let round = 0; round < ISOLATES; round++) {
    const { isolate, run } = await isolateWith(t, 128)
    t.equal(await run(HOARD), '1')
    isolate.dispose()
    while (!isolate.isReleased) await setImmediate()
  }
  // isolated-vm makes one when the last one is taken down.
  await isolateWith(t)
  const grownMb = residentMb() - beforeMb
  t.ok(grownMb < 2 * HOARD_MB, `${grownMb} MiB more than before`)
})

t.test('isolates that have dropped what they had outside of their heaps keep little of it', async (t) => {
  const rigs: Rig[] = []
  for (let index = 0; index < ISOLATES; index++) rigs.push(await isolateWith(t, 128))
  const all = async (code: string) =>
    t.strictSame(
      await Promise.all(rigs.map(({ run }) => run(code))),
      rigs.map(() => '1'),
    )
  const beforeMb = residentMb()
  await all(HOARD)
  const mostMb = residentMb() - beforeMb
  await all('globalThis.kept = []; 1')
  // What is outside is freed behind a collection, and the heap has let go of it with the next. It is given back behind an entry.
  for (let round = 0; round < 2; round++) {
    for (const { isolate } of rigs) await isolate.collectGarbage()
    await all('1')
    await all('1')
  }
  const leftMb = residentMb() - beforeMb
  t.ok(leftMb < mostMb / 2, `${leftMb} MiB of ${mostMb}`)
})
