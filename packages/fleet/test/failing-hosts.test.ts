import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { Fleet, Machine, type FleetListener } from '../src/index.ts'
import type { HostLauncher } from '../src/pool/os-process.ts'

interface FleetOfOptions {
  readonly hostStartTimeoutMs?: number
  readonly launcher?: HostLauncher
}

/** A fleet whose host processes run a script in place of the host program. */
function fleetOf(script: string, { hostStartTimeoutMs = 60_000, launcher }: FleetOfOptions = {}) {
  const lost: Array<{ how: string; respawnInMs: number }> = []
  /** How calls ended, and the ends of hosts, in order. */
  const ends: string[] = []
  const ignore = (): void => {}
  const untilLost = Promise.withResolvers<void>()
  const untilTwoStarted = Promise.withResolvers<void>()
  let started = 0
  const listener: FleetListener = {
    logged: ignore,
    fetchStarted: ignore,
    fetchStopped: ignore,
    fetchBodies: () => undefined,
    streamSaid: ignore,
    answersChanged: ignore,
    usedInBackground: ignore,
    usedCpu: ignore,
    uncached: ignore,
    onStderr: ignore,
    gone: () => ends.push('gone'),
    hostPoisoned: ignore,
    strikeAdded: ignore,
    hostStarted: () => {
      if (++started === 2) untilTwoStarted.resolve()
    },
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
      ...(launcher !== undefined && { launcher }),
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
      answered: (call, { outcome }) => {
        ends.push(outcome)
        call.end(new CarpoolError('internal', 'It was answered.'))
      },
      refused: (call, error) => call.end(error),
    },
  })
  return { fleet, lost, ends, fourLost: untilLost.promise, twoStarted: untilTwoStarted.promise }
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

/** Ends only some time after its host: to take a large process down takes the system a while. */
const LINGERING: HostLauncher = {
  spawn: ({ nodePath, nodeArguments }) => {
    const child = spawn('sh', ['-c', '"$0" "$@" & exec 3>&-; wait; sleep 2', nodePath, ...nodeArguments], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      env: {},
    })
    return { child, pid: () => child.pid ?? 0, endOf: (exitCode, signal) => ({ exitCode, signal }), kill: () => {} }
  },
}

/** A host that ends at the call of `ends`, and answers others. */
const ANSWERS = `
  const socket = new (require('node:net').Socket)({ fd: 3 })
  const say = (message, text = '') => {
    const list = Buffer.from(JSON.stringify([message, text.length, 0]))
    const head = Buffer.alloc(12)
    head.writeUInt32LE(list.length, 0)
    head.writeUInt32LE(text.length, 4)
    socket.write(Buffer.concat([head, list, Buffer.from(text)]))
  }
  socket.on('end', () => process.exit())
  socket.on('data', (data) => {
    const text = data.toString()
    if (text.includes('"setup"')) say({ type: 'ready' })
    const [, invocation, revision] = /"invocation":(\\d+),.*?"revision":"(\\w+)"/.exec(text) ?? []
    if (revision === 'ends') process.exit()
    const answer = { type: 'answer', invocation: Number(invocation), start: 'warm', usage: [1, 1] }
    if (revision !== undefined) say(answer, '{"status":200,"headers":[]}')
  })`

t.test('the standby takes the place of a host that is lost before the system has ended that', async (t) => {
  const { fleet, ends, twoStarted } = fleetOf(ANSWERS, { launcher: LINGERING })
  await fleet.start()
  await twoStarted
  for (const name of ['ends', 'answers']) {
    const call = routedCall(name)
    fleet.place(call)
    await t.rejects(call.ended, { message: 'It was answered.' })
  }
  t.same(ends, ['host-lost', 'ok'])
  await fleet.close()
})
