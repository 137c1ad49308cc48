import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { HostInfo, StatusInfo } from '@carpool/core'
import t from 'tap'
import { startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'

const CARPOOL = fileURLToPath(new URL('../bin/carpool.js', import.meta.url))

const HOST: HostInfo = {
  id: 3,
  pid: 4711,
  state: 'saturated',
  startedAt: '2026-01-01T00:00:00.000Z',
  inFlight: 1200,
  running: 63,
  limit: 64.9,
  runDelayMs: { p50: 0.2, p90: 12.34, p99: 80 },
  cpuCores: 1.25,
  loopUtilization: 0.5,
  loopDelayMs: 1.5,
  enteredIsolates: 4,
  isolates: 150,
  memoryBytes: 300 * 1024 * 1024,
  saturation: 1.25,
}

const STATUS: StatusInfo = {
  version: '1.2.3',
  state: 'ready',
  reasons: [],
  uptimeMs: 90_000,
  sandbox: { on: 13, total: 13, off: [] },
  cores: 2,
  machineBusyCores: 1.5,
  hosts: [HOST],
  inFlight: 1300,
  queued: 100,
  open: { answer: 12, websocket: 3, socket: 40 },
  shed: { 'saturated': 123_456, 'too-many-requests': 0 },
  decisions: [],
  failedStarts: { inRow: 0, nextAttemptInMs: 0 },
}

async function statusOf(t: Parameters<typeof startControlPlane>[0], status: Partial<StatusInfo>, ...args: string[]) {
  const plane = await startControlPlane(t)
  plane.status = { ...STATUS, ...status }
  return await runCommand(['status', '--url', plane.url, '--token', TOKEN, ...args])
}

t.test('the summary, the hosts and nothing more', async (t) => {
  const { exitCode, stdout, stderr } = await statusOf(t, {})
  t.equal(exitCode, 0)
  t.equal(stderr, '')
  t.matchOnly(stdout.split('\n'), [
    'Carpool 1.2.3 is ready, up for 1.5 min.',
    'Sandbox: all 13 layers are on.',
    '1300 in flight, 100 of them queued. Refused so far: saturated 123456.',
    'Open: 12 streamed answers, 3 WebSockets, 40 sockets.',
    '1.50 of 2 cores are busy.',
    '',
    /^HOST +PID +STATE +SATURATION +CPU +LOOP +LATE +RUN DELAY P50 +P90 +P99 +RUNNING +IN FLIGHT +ISOLATES +MEMORY +STARTED$/,
    /^ +3 +4711 +saturated +125\.0% +1\.25 +50\.0% +1\.5 ms +0\.2 ms +12\.3 ms +80 ms +63\/64 +1200 +4\/150 +300 MiB +2026-01-01T00:00:00\.000Z$/,
    '',
  ])
})

t.test('why a server is not ready, and why hosts do not start', async (t) => {
  const { exitCode, stdout } = await statusOf(t, {
    state: 'not-ready',
    reasons: ['No host process is ready.'],
    hosts: [],
    shed: {},
    failedStarts: { inRow: 3, nextAttemptInMs: 4000, last: 'exit code 1' },
  })
  t.equal(exitCode, 0)
  t.strictSame(stdout.split('\n'), [
    'Carpool 1.2.3 is not ready, up for 1.5 min.',
    '  No host process is ready.',
    'Sandbox: all 13 layers are on.',
    '1300 in flight, 100 of them queued. Refused so far: none.',
    'Open: 12 streamed answers, 3 WebSockets, 40 sockets.',
    '1.50 of 2 cores are busy.',
    'The last 3 starts of hosts failed: exit code 1. The next one is in 4 s.',
    '',
    'There are no host processes.',
    '',
  ])
})

t.test('which layers of the sandbox are off is one line, to all who may ask, and as JSON', async (t) => {
  const group = { layers: ['user', 'seccomp'], remedy: 'Install it.' }
  const sandbox = { on: 11, total: 13, off: [{ ...group, why: 'It is not there.' }] }
  const { stdout } = await statusOf(t, { sandbox })
  t.match(stdout, /^Sandbox: 11 of 13 layers are on\. user, seccomp are off: It is not there\. Install it\.$/m)
  t.match(JSON.parse((await statusOf(t, { sandbox }, '--json')).stdout), { sandbox })
  const plane = await startControlPlane(t)
  const { version, state, reasons, uptimeMs } = STATUS
  plane.status = { version, state, reasons, uptimeMs, sandbox: { ...sandbox, off: [group] } } as unknown as StatusInfo
  const summary = await runCommand(['status', '--url', plane.url, '--token', TOKEN])
  t.match(summary.stdout, /^Sandbox: 11 of 13 layers are on\. user, seccomp are off\. Install it\.\n$/m)
})

t.test('the last decisions come with the figures that led to them', async (t) => {
  const decision = { at: '2026-01-01T00:00:01.000Z', action: 'grow', reason: 'panic', hostsBefore: 1, hostsAfter: 2 }
  const decisions = Array.from({ length: 9 }, () => ({ ...decision, figures: { cpuCores: 0.98765, delayedPercent: 100 } }))
  const { stdout } = await statusOf(t, { decisions })
  const [heading, ...lines] = stdout.trimEnd().split('\n').slice(-6)
  t.match(heading, /^DECIDED +ACTION +HOSTS +REASON +FIGURES$/)
  for (const line of lines) t.match(line, /^2026-01-01T00:00:01\.000Z +grow +1 -> 2 +panic +cpuCores=0\.988, delayedPercent=100$/)
  t.equal(lines.length, 5)
  t.strictSame(JSON.parse((await statusOf(t, { decisions }, '--json')).stdout), { ...STATUS, decisions })
})

t.test('what a server says cannot move the cursor', async (t) => {
  const { stdout } = await statusOf(t, {
    reasons: ['\u001b[2J'],
    hosts: [{ ...HOST, state: '\u001b[2Jready' as HostInfo['state'] }],
  })
  t.notMatch(stdout, '\u001b')
})

t.test('--watch prints it again until Ctrl+C, and ends with 0', async (t) => {
  const plane = await startControlPlane(t)
  plane.status = STATUS
  const args = ['status', '-w', '--json', '--url', plane.url, '--token', TOKEN]
  const child = spawn('env', ['-i', `PATH=${process.env['PATH'] ?? ''}`, process.execPath, CARPOOL, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  let text = ''
  for await (const chunk of child.stdout) {
    text += String(chunk)
    plane.status = { ...STATUS, queued: 7 }
    if (text.split('\n').length > 2) break
  }
  child.kill('SIGINT')
  t.strictSame(await exited, [0, null])
  const [first, second] = text.split('\n').map((line) => (line === '' ? undefined : (JSON.parse(line) as StatusInfo)))
  t.strictSame([first?.queued, second?.queued], [100, 7])
})

t.test('--watch ends when the server does', async (t) => {
  const plane = await startControlPlane(t)
  const args = ['status', '--watch', '--url', plane.url, '--token', 'wrong']
  t.match(await runCommand(args), { exitCode: 1, stdout: '', stderr: /token/ })
})
