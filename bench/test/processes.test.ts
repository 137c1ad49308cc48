import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { parsePs, parseStat } from '../src/lib/process-table.ts'
import { programOf, selectTree, type TreeMember } from '../src/lib/process-tree.ts'
import { watchProcesses } from '../src/lib/process-watch.ts'
import { TreeAccount } from '../src/lib/tree-account.ts'

t.test('a stat line is read past a name with spaces and parentheses', async (t) => {
  const stat = '42 (a) (b c) S 7 42 42 0 -1 4194304 900 0 0 0 150 50 20 5 20 0 11 0 12345 1000000 300 18446744073709551615'
  t.strictSame(parseStat(stat), { pid: 42, parentPid: 7, cpuSeconds: 2, endedChildrenCpuSeconds: 0.25 })
})

t.test('the times of ps are read in all their forms', async (t) => {
  const output = '    1     0   512 00:00:01\n   20     1  2048 1-02:03:04\n  300    20   100   2:03.50\n'
  t.strictSame(
    parsePs(output).map(({ pid, parentPid, cpuSeconds, residentBytes }) => [pid, parentPid, cpuSeconds, residentBytes]),
    [
      [1, 0, 1, 512 * 1024],
      [20, 1, 93_784, 2048 * 1024],
      [300, 20, 123.5, 100 * 1024],
    ],
  )
})

t.test('a tree is its roots with all their descendants', async (t) => {
  const reading = (pid: number, parentPid: number) => ({ pid, parentPid, cpuSeconds: 0, endedChildrenCpuSeconds: 0 })
  const processes = [reading(1, 0), reading(5, 3), reading(2, 1), reading(3, 2), reading(4, 1), reading(9, 4)]
  const pids = (...roots: number[]) =>
    selectTree(processes, roots)
      .map(({ pid }) => pid)
      .toSorted((a, b) => a - b)
  t.strictSame(pids(2), [2, 3, 5])
  t.strictSame(pids(2, 3, 4), [2, 3, 4, 5, 9], 'each once')
  t.strictSame(pids(77), [])
})

t.test('a process is named by its script', async (t) => {
  t.equal(programOf('/usr/bin/node\0--flag=/x/y.js\0/home/me/carpool/host/src/process.ts\0'), 'host/src/process.ts')
  t.equal(programOf('/usr/bin/bwrap\0--unshare-net\0--\0/usr/bin/node\0/home/me/carpool/host/src/process.ts\0'), 'bwrap')
  t.equal(programOf('/opt/bin/workerd\0serve\0hello.capnp\0'), 'workerd')
  t.equal(programOf(''), '')
})

const member = (pid: number, cpuSeconds: number, megabytes: number, ended = 0): TreeMember => ({
  pid,
  program: `p${pid}`,
  cpuSeconds,
  endedChildrenCpuSeconds: ended,
  residentBytes: megabytes * 2e6,
  proportionalBytes: megabytes * 1e6,
})

t.test('the peak is that of the sum, not the sum of the peaks', async (t) => {
  const account = new TreeAccount()
  account.look(0, [member(1, 0, 10), member(2, 0, 90)])
  account.look(50, [member(1, 0, 60), member(2, 0, 20)])
  account.look(130, [member(1, 0, 10), member(2, 0, 10)])
  const { peakBytes, peakResidentBytes, memoryKind, looks, longestGapMs, processes } = account.usage
  t.strictSame([peakBytes, peakResidentBytes, memoryKind], [100e6, 200e6, 'pss'])
  t.strictSame([looks, longestGapMs], [3, 80])
  t.strictSame(
    processes.map((usage) => usage.peakBytes),
    [60e6, 90e6],
  )
})

t.test('CPU counts from the first look on, with that of processes that came and ended', async (t) => {
  const account = new TreeAccount()
  account.look(0, [member(1, 5, 1, 2)])
  account.look(50, [member(1, 5.5, 1, 2), member(2, 1, 1)])
  account.look(100, [member(1, 6, 1, 5)])
  t.equal(account.usage.cpuSeconds, 4, '1 s of its own, and 3 s of the child in all')
  t.equal(account.usage.peakProcesses, 2)
})

t.test('one process without a proportional size makes the sum one of resident sizes', async (t) => {
  const account = new TreeAccount()
  const { proportionalBytes: _, ...without } = member(2, 0, 10)
  account.look(0, [member(1, 0, 10), without])
  t.match(account.usage, { memoryKind: 'rss', peakBytes: 40e6 })
})

t.test('a watch sees a process, its children and the CPU they take', async (t) => {
  const script = 'while (process.cpuUsage().user < 200_000); process.stdout.write("done"); process.stdin.resume()'
  const watch = await watchProcesses([process.pid])
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  const usage = await watch.stop()
  child.stdin.end()
  await once(child, 'close')
  const found = usage.processes.find(({ pid }) => pid === child.pid)
  t.ok(found !== undefined && found.peakBytes > 10e6, 'its memory')
  t.ok(usage.cpuSeconds >= 0.1, 'its CPU')
  t.ok(usage.peakProcesses >= 2)
})
