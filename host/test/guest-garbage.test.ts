import { resolveLimits } from '@carpool/core'
import { ENTRIES, SAYS } from '@carpool/runtime/bridge'
import t, { type Test } from 'tap'
import { Account } from '../src/accounting/account.ts'
import { Bootstrap } from '../src/isolates/guest-isolate.ts'
import type { Guest } from '../src/isolates/guest.ts'
import { Entry } from '../src/scheduler/batch.ts'
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

/** However little it is, that is charged when the guest is gone. */
async function chargeAll(guest: Guest): Promise<void> {
  guest.dispose()
  while (!guest.isReleased) await new Promise((resolve) => setImmediate(resolve))
  guest.chargeBetween()
}

t.test('what V8 does between the entries of calls is on no call, and not background work either', async (t) => {
  const guest = await loaded(t)
  const call = new Account()
  await runOften(guest, call, 300)
  await chargeAll(guest)
  t.equal(guest.background.cpuNs, 0)
  t.ok(guest.shared.cpuNs > 3e6, `${guest.shared.cpuNs} ns besides ${call.cpuNs}`)
  t.ok(guest.chargedNs >= guest.shared.cpuNs + call.cpuNs)
})

t.test('what V8 does between the entries of background work is background work as well', async (t) => {
  const guest = await loaded(t)
  await runOften(guest, guest.background, 300)
  t.ok(guest.backgroundNs > guest.background.cpuNs, 'its budget knows of it before it is charged')
  await chargeAll(guest)
  const { cpuNs } = guest.background
  t.ok(guest.shared.cpuNs < cpuNs / 10, `${guest.shared.cpuNs} ns besides ${cpuNs}`)
  t.ok(cpuNs > guest.chargedNs * 0.9, `${cpuNs} of ${guest.chargedNs} ns`)
})

t.test('background work pays for its part of what all have used, also where nothing else ran of late', async (t) => {
  const guest = await loaded(t)
  await runOften(guest, new Account(), 300)
  guest.chargeBetween()
  const before = guest.shared.cpuNs
  await runOften(guest, guest.background, 100)
  await chargeAll(guest)
  t.ok(guest.shared.cpuNs > before)
})
