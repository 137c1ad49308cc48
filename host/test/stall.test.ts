import t from 'tap'
import { judgeStall, STALL_GRACE_MS } from '../src/stall.ts'

const wallMs = 1000

t.test('a guest that was heard after the cancel is alive, however busy', async (t) => {
  t.equal(judgeStall({ nowMs: 99_999, heardAtMs: 501, canceledAtMs: 500, wallMs }), 'alive')
})

t.test('a guest that was silent for a wall limit and the grace is stuck', async (t) => {
  t.equal(judgeStall({ nowMs: 1000 + wallMs + STALL_GRACE_MS, heardAtMs: 1000, canceledAtMs: 1900, wallMs }), 'stuck')
})

t.test('a guest that fell silent lately gets the rest of a wall limit', async (t) => {
  t.equal(judgeStall({ nowMs: 2000, heardAtMs: 1800, canceledAtMs: 1900, wallMs }), 1800 + wallMs + STALL_GRACE_MS - 2000)
})
