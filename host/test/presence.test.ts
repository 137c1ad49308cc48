import type { ToServer } from '@carpool/wire'
import t from 'tap'
import { Presence } from '../src/calls/presence.ts'

function rig() {
  const sent: ToServer[] = []
  const clock = { nowMs: 0 }
  const presence = new Presence(
    (message) => void sent.push(message),
    () => clock.nowMs,
  )
  return { sent, clock, presence }
}

t.test('a process that looks often is there', async (t) => {
  const { sent, clock, presence } = rig()
  for (; clock.nowMs < 10_000; clock.nowMs += 999) t.ok(presence.look())
  t.same(sent, [])
})

t.test('one that was away begins nothing until the server has answered', async (t) => {
  const { sent, clock, presence } = rig()
  clock.nowMs = 1_000
  t.notOk(presence.look())
  t.notOk(presence.look())
  t.same(sent, [{ type: 'away', absence: 1 }], 'it asks once')
  presence.resume(1)
  t.ok(presence.look())
})

t.test('an answer that was on its way when it was away again is not the one that it waits for', async (t) => {
  const { sent, clock, presence } = rig()
  clock.nowMs = 5_000
  presence.look()
  clock.nowMs = 9_000
  presence.look()
  presence.resume(1)
  t.notOk(presence.look(), 'what was sent behind the first answer may have been taken back')
  presence.resume(2)
  t.ok(presence.look())
  t.equal(sent.length, 2)
})
