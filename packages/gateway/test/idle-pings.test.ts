import t from 'tap'
import { IdlePings, type Pinged } from '../src/web-socket/idle-pings.ts'

interface Client extends Pinged {
  readAtMs: number
  pings: number
  drops: number
}

function setUp(): { readonly pings: IdlePings; readonly client: () => Client; pass(ms: number): void; isTicking(): boolean } {
  let nowMs = 0
  let tick: (() => void) | undefined
  const every = (callback: () => void): { stop(): void } => {
    tick = callback
    return { stop: () => (tick = undefined) }
  }
  const pings = new IdlePings({ clock: () => nowMs, idleMs: 100, every })
  const client = (): Client => {
    const made = { readAtMs: nowMs, pings: 0, drops: 0, ping: () => made.pings++, drop: () => made.drops++ }
    pings.add(made)
    return made
  }
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 5) {
      nowMs += 5
      tick?.()
    }
  }
  return { pings, client, pass, isTicking: () => tick !== undefined }
}

t.test('a client that is silent is pinged once, and dropped if it stays so', (t) => {
  const { client, pass, isTicking } = setUp()
  const silent = client()
  pass(100)
  t.strictSame([silent.pings, silent.drops], [1, 0])
  pass(95)
  t.strictSame([silent.pings, silent.drops], [1, 0])
  pass(5)
  t.strictSame([silent.pings, silent.drops], [1, 1])
  pass(200)
  t.strictSame([silent.pings, silent.drops], [1, 1], 'it is not looked at any more')
  t.notOk(isTicking())
  t.end()
})

t.test('one that answers pings stays, and one that speaks is not pinged', (t) => {
  const { client, pass, pings, isTicking } = setUp()
  const answering = client()
  const speaking = client()
  for (let time = 100; time <= 1_000; time += 100) {
    pass(100)
    answering.readAtMs = time
    speaking.readAtMs = time + 50
  }
  t.equal(answering.drops + speaking.drops, 0)
  t.ok(answering.pings >= 4, `${answering.pings}`)
  t.equal(speaking.pings, 1, 'only before it first spoke')
  pings.remove(answering)
  pings.remove(speaking)
  t.notOk(isTicking(), 'without clients there is no timer')
  t.end()
})
