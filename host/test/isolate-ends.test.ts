import { bundleRuntime } from '@carpool/runtime'
import t from 'tap'
import { IS_WHOLE } from '../../test/support/form.ts'
import { Bootstrap, GuestIsolate } from '../src/isolates/guest-isolate.ts'
import '../../test/support/own-exit.ts'

const AT_ONCE = 8
const ROUNDS = IS_WHOLE ? 150 : 30

// Each of them is a moment at which V8 or isolated-vm may hold on to the isolate.
const MOMENTS: ReadonlyArray<(isolate: GuestIsolate) => unknown> = [
  () => {},
  () => new Promise((resolve) => setImmediate(resolve)),
  (isolate) => {
    isolate.push(0, 0)
    isolate.enter()
  },
  (isolate) => void isolate.heapBytes().catch(() => {}),
  (isolate) => {
    void isolate.measure(() => isolate.collectGarbage()).catch(() => {})
    return new Promise((resolve) => setImmediate(resolve))
  },
]

t.test('isolates that are made and disposed at the same time all come to their end, at whatever moment that is', async (t) => {
  const bootstrap = new Bootstrap(await bundleRuntime())
  const ended: GuestIsolate[] = []
  const makeAndDispose = async (worker: number): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      const isolate = await GuestIsolate.create({
        bootstrap,
        callbacks: { drain: () => 0 },
        memoryLimitMb: 64,
        // What it holds is known from then on, until it is gone.
        isTrimmed: true,
        onCatastrophe: (reason) => t.fail(reason),
      })
      await MOMENTS[(round + worker) % MOMENTS.length]?.(isolate)
      isolate.dispose()
      isolate.dispose()
      ended.push(isolate)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, worker) => makeAndDispose(worker)))
  while (ended.some(({ heldBytes }) => heldBytes > 0)) await new Promise((resolve) => setImmediate(resolve))
  t.pass(`${ended.length} isolates`)
})
