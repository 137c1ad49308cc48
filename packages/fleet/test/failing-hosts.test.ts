import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { Fleet, Machine, type FleetListener } from '../src/index.ts'

/** A fleet whose host processes run a script in place of the host program. */
function fleetOf(script: string, { hostStartTimeoutMs = 60_000 } = {}) {
  const lost: Array<{ how: string; respawnInMs: number }> = []
  const ignore = (): void => {}
  const untilLost = Promise.withResolvers<void>()
  const listener: FleetListener = {
    logged: ignore,
    fetchStarted: ignore,
    fetchStopped: ignore,
    usedInBackground: ignore,
    usedCpu: ignore,
    uncached: ignore,
    onStderr: ignore,
    gone: ignore,
    hostPoisoned: ignore,
    strikeAdded: ignore,
    hostStarted: ignore,
    scaled: ignore,
    hostLost: (how, respawnInMs) => {
      lost.push({ how, respawnInMs })
      if (lost.length === 4) untilLost.resolve()
    },
  }
  const fleet = new Fleet({
    program: {
      nodePath: process.execPath,
      nodeArguments: ['-e', script],
      runtime: '',
      setup: {
        type: 'setup',
        prewarm: 0,
        maxIsolates: 1,
        maxBodyBytes: 1,
        enteredIsolates: 1,
        entrySliceMs: 1,
        longEntries: 1,
        memoryBudgetBytes: 0,
        guestClock: 'frozen',
        webAssembly: false,
      },
    },
    policy: {
      scaling: {
        minHosts: 1,
        maxHosts: 2,
        saturationPercent: 80,
        saturationWindowMs: 5_000,
        panicPercent: 95,
        panicWindowMs: 1_000,
        machineFullPercent: 100,
        growPauseMs: 0,
        shrinkWindowMs: 60_000,
        shrinkPauseMs: 0,
        shrinkPercent: 60,
      },
      limit: { initial: 4, min: 1, max: 10, targetMs: 5 },
      queue: { targetMs: 5, intervalMs: 100, maxQueueMs: 50 },
      maxQueued: 10,
      standbyHosts: 1,
      hostStartTimeoutMs,
      strikes: { windowMs: 60_000, quarantineAfter: 2, disableAfter: 4 },
      quarantineHosts: 1,
      poisonedDrainMs: 10_000,
      recycling: { maxAgeMs: 0, maxInvocations: 0 },
    },
    machine: new Machine(),
    codeOf: async () => ({ source: '' }),
    ownerOf: () => 'o',
    isLive: () => true,
    isKeptWarm: () => false,
    keptWarm: () => [],
    listener,
    calls: {
      placed: ignore,
      unplaced: ignore,
      answered: (call) => call.end(new CarpoolError('internal', 'It was answered.')),
      refused: (call, error) => call.end(error),
    },
  })
  return { fleet, lost, fourLost: untilLost.promise }
}

t.test('hosts that die at once are tried ever more rarely, one at a time, and it is told', async (t) => {
  const { fleet, lost, fourLost } = fleetOf('process.exit(3)')
  const started = fleet.start()
  started.catch(() => {})
  await fourLost
  t.same(
    lost.slice(0, 4).map(({ respawnInMs }) => respawnInMs),
    [0, 100, 200, 400],
  )
  t.ok(lost.every(({ how }) => how === 'exit code 3'))
  t.notOk(fleet.isReady)
  t.match(fleet.failedStarts, { inRow: 4, last: 'exit code 3' })
  t.ok(fleet.failedStarts.nextAttemptInMs > 0)
  t.ok(fleet.hosts.length <= 1)
  const call = routedCall('f')
  fleet.place(call)
  await t.rejects(call.ended, { code: 'no-host' })
  await fleet.close()
  await t.rejects(started, { code: 'draining' })
})

t.test('what could not be started is not asked for again and again', async (t) => {
  // Fails at first, then lives without ever getting ready.
  const marks = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(marks, { recursive: true }))
  const script = `
    const { readdirSync, writeFileSync } = require('node:fs')
    const before = readdirSync('${marks}').length
    writeFileSync('${marks}/' + process.pid, '')
    if (before < 5) process.exit(1)
    setInterval(() => {}, 1000)`
  const { fleet, fourLost } = fleetOf(script)
  fleet.start().catch(() => {})
  let most = 0
  const watch = setInterval(() => (most = Math.max(most, fleet.hosts.length)), 5)
  await fourLost
  // Several looks of the scaler fall into the delay before the last failure and the start after it.
  while (readdirSync(marks).length < 6) await new Promise((resolve) => setTimeout(resolve, 20))
  clearInterval(watch)
  t.equal(fleet.hosts.length, 1)
  t.ok(most <= 1, `${most} processes at the same time`)
  t.same(fleet.decisions, [])
  await fleet.close()
})

t.test('a host that never gets ready is ended, and another is tried', async (t) => {
  const { fleet, lost, fourLost } = fleetOf('setInterval(() => {}, 1000)', { hostStartTimeoutMs: 100 })
  fleet.start().catch(() => {})
  await fourLost
  t.equal(lost[0]?.how, 'it did not answer in time')
  t.ok(fleet.hosts.length <= 1)
  await fleet.close()
})

t.test('a smoke test in a host that never gets ready fails', async (t) => {
  const { fleet } = fleetOf('setInterval(() => {}, 1000)', { hostStartTimeoutMs: 100 })
  fleet.start().catch(() => {})
  await t.rejects(fleet.smokeTest('o', routedCall('f').revision, ''), { code: 'no-host' })
  await fleet.close()
})
