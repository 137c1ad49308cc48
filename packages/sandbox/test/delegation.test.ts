import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { delegate } from '../src/cgroup/delegation.ts'

/** A folder with the files of a control group. The kernel would act on what is written; what is to be written is the same. */
function groupOf(t: Test, members: readonly number[], enabled = ''): string {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'cgroup.procs'), members.map((pid) => `${pid}\n`).join(''))
  writeFileSync(join(folder, 'cgroup.subtree_control'), enabled)
  return folder
}

t.test('a group that is ours alone is divided, and we move into a part of it', async (t) => {
  const folder = groupOf(t, [process.pid])
  t.strictSame(delegate(folder, ['memory', 'pids']), { parent: folder })
  t.equal(readFileSync(join(folder, 'carpool-server/cgroup.procs'), 'utf8'), String(process.pid))
  t.equal(readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8'), '+memory +pids')
})

t.test('who has been there before finds it as it was', async (t) => {
  const folder = groupOf(t, [], 'memory pids\n')
  mkdirSync(join(folder, 'carpool-server'))
  t.strictSame(delegate(join(folder, 'carpool-server'), ['memory', 'pids']), { parent: folder })
  t.strictSame(delegate(folder, ['pids']), { parent: folder })
})

t.test('who only looks leaves it as it is', async (t) => {
  const folder = groupOf(t, [process.pid])
  t.match(delegate(folder, ['memory'], true), { problem: /^The server divides its group when it starts; that was not tried/ })
  t.strictSame(readdirSync(folder).toSorted(), ['cgroup.procs', 'cgroup.subtree_control'])
  t.equal(readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8'), '')
  const divided = groupOf(t, [], 'memory pids\n')
  t.strictSame(delegate(divided, ['memory'], true), { parent: divided })
})

t.test('one that others are in is left alone', async (t) => {
  const folder = groupOf(t, [process.pid, 1])
  t.match(delegate(folder, ['memory']), { problem: 'Other processes are in the group of the server.' })
  t.equal(readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8'), '')
})

t.test('one that cannot be written is told of', async (t) => {
  t.match(delegate(join(tmpdir(), 'carpool-nothing'), ['memory']), { problem: /ENOENT/ })
})

const UNIFIED = /^(?:\S+ ){4}(\S+) .* - cgroup2 /m.exec(readOrEmpty('/proc/self/mountinfo'))?.[1]

const folder = join(UNIFIED ?? '/', `carpool-test-${process.pid}`)
const skip = !canMake(folder) && 'no control group of version 2 can be made here'

t.test('the kernel refuses a group the controllers that it does not have', { skip }, async (t) => {
  t.teardown(() => {
    rmdirSync(join(folder, 'carpool-server'))
    rmdirSync(folder)
  })
  t.match(delegate(folder, ['nothing']), { problem: /^The group of the server cannot be divided: \w+\.$/ })
})

function canMake(folder: string): boolean {
  if (UNIFIED === undefined) return false
  try {
    mkdirSync(folder)
    return true
  } catch {
    return false
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
