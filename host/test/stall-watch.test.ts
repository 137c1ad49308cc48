import t from 'tap'
import { judgeStall, StallWatch, STALL_GRACE_MS, type Watched } from '../src/stall-watch.ts'

const wallMs = 1000

t.test('a guest that owes nothing, or not for long, is fine', async (t) => {
  t.equal(judgeStall({ nowMs: 99_999, silentSinceMs: undefined, pingedAtMs: undefined, wallMs }), 'fine')
  t.equal(judgeStall({ nowMs: 1999, silentSinceMs: 1000, pingedAtMs: undefined, wallMs }), 'fine')
})

t.test('a guest that was silent for a wall limit is asked first, and ended when it does not answer', async (t) => {
  t.equal(judgeStall({ nowMs: 2000, silentSinceMs: 1000, pingedAtMs: undefined, wallMs }), 'ping')
  t.equal(judgeStall({ nowMs: 2000 + STALL_GRACE_MS - 1, silentSinceMs: 1000, pingedAtMs: 2000, wallMs }), 'fine')
  t.equal(judgeStall({ nowMs: 2000 + STALL_GRACE_MS, silentSinceMs: 1000, pingedAtMs: 2000, wallMs }), 'stuck')
})

/** A guest on a clock of the test's own; `answers` says whether it gets round to pings. */
class Scripted implements Watched {
  disposed = false
  silentSinceMs: number | undefined
  readonly wallMs = wallMs
  pings = 0
  answers = true
  ping(): void {
    this.pings++
    if (this.answers) this.silentSinceMs = undefined
  }
}

t.test('an idle guest whose timers do nothing lives on; a stuck one is reported once', async (t) => {
  const stuck: Scripted[] = []
  const watch = new StallWatch<Scripted>((guest) => stuck.push(guest))
  const [idle, looping] = [new Scripted(), new Scripted()]
  looping.answers = false
  watch.add(idle)
  watch.add(looping)
  idle.silentSinceMs = looping.silentSinceMs = 10
  for (let nowMs = 0; nowMs < 5000; nowMs += STALL_GRACE_MS) watch.look(nowMs)
  t.strictSame(stuck, [looping])
  t.equal(idle.pings, 1)
})

t.test('a guest that is silent again later is asked again', async (t) => {
  const stuck: Scripted[] = []
  const watch = new StallWatch<Scripted>((guest) => stuck.push(guest))
  const guest = new Scripted()
  watch.add(guest)
  guest.silentSinceMs = 0
  watch.look(1000)
  guest.silentSinceMs = 1500
  guest.answers = false
  watch.look(2500)
  t.equal(guest.pings, 2)
  t.strictSame(stuck, [])
  watch.look(2500 + STALL_GRACE_MS)
  t.strictSame(stuck, [guest])
})
