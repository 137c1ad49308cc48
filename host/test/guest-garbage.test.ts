import { resolveLimits } from '@carpool/core'
import { ENTRIES, SAYS } from '@carpool/runtime/bridge'
import t, { type Test } from 'tap'
import { Account } from '../src/accounting/account.ts'
import { UsageReport } from '../src/accounting/usage-report.ts'
import { Bootstrap } from '../src/isolates/guest-isolate.ts'
import type { Guest } from '../src/isolates/guest.ts'
import { Entry } from '../src/scheduler/batch.ts'
import type { Send } from '../src/send.ts'
import { guestWith } from './support/guest.ts'

/** Each entry replaces some of what it keeps. */
const BOOT = new Bootstrap(`(function boot(names, ...functions) {
  const say = functions[names.split(',').indexOf('say')]
  const kept = new Map()
  return {
    load() { say(${SAYS.loaded}, 0, 0, 0, JSON.stringify({ ok: true, form: 'fetch' }), '') },
    dispatch() { for (let i = 0; i < 3000; i++) kept.set((Math.random() * 2e5) | 0, { i }) },
    rejected() {},
  }
})`)

async function loaded(t: Test): Promise<Guest> {
  const { guest } = await guestWith(t, BOOT, 128)
  const options = { functionName: 'garbage', revision: 'r', env: {}, limits: resolveLimits({}) }
  await guest.load({ source: '(function () {})', filename: 'garbage.js' }, options, 'o')
  return guest
}

async function runOften(guest: Guest, account: Account, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    guest.queue.push(new Entry(account, ENTRIES.fireTimer, 0))
    while (guest.batch !== undefined) await new Promise((resolve) => setImmediate(resolve))
  }
}

async function untilReleased(guest: Guest): Promise<void> {
  guest.dispose()
  while (!guest.isReleased) await new Promise((resolve) => setImmediate(resolve))
}

/** Runs entries until it is done, 3,000 at most: how much garbage V8 collects between them, and when, depends on the machine. */
async function runUntil(guest: Guest, account: Account, isDone: () => boolean): Promise<void> {
  for (let entries = 0; entries < 3000 && !isDone(); entries += 10) await runOften(guest, account, 10)
}

/** CPU time of what V8 did between entries that is not charged yet, in ns. */
function heldNs(guest: Guest, account: Account): number {
  return guest.totalNs - guest.start.everNs - account.everNs - guest.memoryAccount.everNs - guest.shared.everNs
}

t.test('what V8 does between entries is on no call, and not background work either', async (t) => {
  const guest = await loaded(t)
  const call = new Account()
  await runUntil(guest, call, () => heldNs(guest, call) > 3e6)
  await untilReleased(guest)
  // However little it is, it is charged when the guest is gone.
  guest.chargeBetween()
  t.equal(guest.background.cpuNs, 0)
  t.ok(guest.shared.cpuNs > 3e6, `${guest.shared.cpuNs} ns besides ${call.cpuNs}`)
  t.equal(guest.totalNs, guest.start.cpuNs + call.cpuNs + guest.memoryAccount.cpuNs + guest.shared.cpuNs)
})

t.test('what V8 does between the entries of background work is within its budget', async (t) => {
  const guest = await loaded(t)
  await runOften(guest, guest.background, 300)
  const { cpuNs } = guest.background
  t.notOk(guest.backgroundBudget.take(cpuNs, cpuNs / 1e6 + 1, 0))
})

t.test('a report sends what has not been sent, the rest of it when the guest is gone', async (t) => {
  const sent: number[] = []
  const send: Send = (message) => message.type === 'background' && sent.push(message.cpuUs)
  const report = new UsageReport({ send, underWay: () => [] })
  const guest = await loaded(t)
  report.add(guest)
  const call = new Account()
  await runUntil(guest, call, () => {
    report.send()
    return sent.length > 0
  })
  t.equal(sent.length, 1)
  t.ok(sent[0]! >= 10_000, `${sent[0]} µs: less is not worth a report`)
  await runUntil(guest, call, () => heldNs(guest, call) >= 1000)
  guest.dispose()
  report.send()
  await untilReleased(guest)
  report.send()
  const sum = (): number => sent.reduce((total, us) => total + us, 0)
  const wholeUs = Math.floor(guest.shared.everNs / 1000)
  t.ok(wholeUs > sent[0]!)
  t.equal(sum(), wholeUs)
  guest.shared.charge(5_000)
  report.send()
  t.equal(sum(), wholeUs, 'it is forgotten then')
})
