import { Account } from '../src/accounting/account.ts'
import fc from 'fast-check'
import t from 'tap'
import { Stay } from '../src/scheduler/stay.ts'
import { TURN_MS, Turns, type Holdable } from '../src/scheduler/turns.ts'

class Sleeper implements Holdable {
  isHeld = false
  isConfined = false
  readonly canBeHeld: boolean

  constructor(canBeHeld = true) {
    this.canBeHeld = canBeHeld
  }

  hold(): boolean {
    this.isHeld = this.canBeHeld
    return this.canBeHeld
  }

  resume(): void {
    this.isHeld = false
  }

  confine(): void {
    this.isConfined = true
  }

  unconfine(): void {
    this.isConfined = false
  }
}

t.test('no more run than there are places, all get the same time, and whoever ends makes room', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), (places, ends) => {
      const turns = new Turns(places)
      const all = ends.map((endsEarly) => ({ endsEarly, stay: new Stay([new Account()], 0), guest: new Sleeper(), ranMs: 0 }))
      const looks = 40 * all.length
      let isRight = true
      for (let look = 0; look < looks; look++) {
        const nowMs = look * 10
        const left = all.filter(({ endsEarly }) => !endsEarly || look < looks / 4)
        for (const { stay } of all) if (!left.some((one) => one.stay === stay)) turns.end(stay, nowMs)
        for (const { stay, guest } of left) turns.take(stay, guest, nowMs)
        const awake = left.filter(({ guest }) => !guest.isHeld)
        isRight &&= awake.length === Math.min(places, left.length)
        for (const one of awake) one.stay.measured([(one.ranMs += 10) * 1e6])
      }
      const lasting = all.filter(({ endsEarly }) => !endsEarly).map(({ ranMs }) => ranMs)
      const spreadMs = lasting.length === 0 ? 0 : Math.max(...lasting) - Math.min(...lasting)
      return isRight && spreadMs <= 3 * TURN_MS + 0.1 * Math.max(0, ...lasting)
    }),
  )
})

t.test('whoever cannot be held runs on, and the others go on by turns beside it', async (t) => {
  const turns = new Turns(1)
  const stuck = new Sleeper(false)
  const stays = [new Stay([], 0), new Stay([], 0), new Stay([], 0)] as const
  const [first, second] = [new Sleeper(), new Sleeper()]
  const look = (nowMs: number): void => {
    turns.take(stays[0], stuck, nowMs)
    turns.take(stays[1], first, nowMs)
    turns.take(stays[2], second, nowMs)
  }
  look(0)
  t.same([stuck.isHeld, first.isHeld, second.isHeld], [false, true, true])
  look(TURN_MS)
  t.same([first.isHeld, second.isHeld], [false, true])
  look(2 * TURN_MS)
  t.same([first.isHeld, second.isHeld], [true, false])
})

t.test('what is lost while it sleeps wakes up, to its end, and is not taken in again', async (t) => {
  const turns = new Turns(1)
  const [running, asleep] = [new Stay([], 0), new Stay([], 0)]
  const guest = new Sleeper()
  turns.take(running, new Sleeper(), 0)
  turns.take(asleep, guest, 0)
  t.ok(guest.isHeld)
  t.ok(asleep.wasHeld, 'the time that it sleeps is no wait for a core')
  turns.take(asleep, guest, 7)
  t.equal(asleep.heldMs, 7)
  asleep.endedAtMs = 10
  turns.end(asleep, 10)
  turns.take(asleep, guest, 20)
  t.notOk(guest.isHeld)
})

t.test('who is held and uses CPU all the same is kept to a few cores', async (t) => {
  const turns = new Turns(1)
  const [running, asleep] = [new Stay([], 0), new Stay([new Account()], 0)]
  const guest = new Sleeper()
  turns.take(running, new Sleeper(), 0)
  asleep.measured([50e6])
  turns.take(asleep, guest, 0)
  turns.take(asleep, guest, 10)
  t.notOk(guest.isConfined)
  asleep.measured([75e6])
  turns.take(asleep, guest, 20)
  t.ok(guest.isConfined)
  turns.end(running, 30)
  t.notOk(guest.isConfined, 'its turn is its own')
})

t.test('whoever has had least is the next, unless another has slept for long', async (t) => {
  const turns = new Turns(1)
  const used = (ms: number): Stay => {
    const stay = new Stay([new Account()], 0)
    stay.measured([ms * 1e6])
    return stay
  }
  const [running, long, short] = [used(500), used(400), used(11)]
  const guests = [new Sleeper(), new Sleeper(), new Sleeper()] as const
  const look = (nowMs: number): void => {
    for (const [index, stay] of [running, long, short].entries()) turns.take(stay, guests[index]!, nowMs)
  }
  look(0)
  look(TURN_MS)
  t.same(
    guests.map(({ isHeld }) => isHeld),
    [true, true, false],
  )
  look(1_000)
  t.same(
    guests.map(({ isHeld }) => isHeld),
    [true, false, true],
  )
})
