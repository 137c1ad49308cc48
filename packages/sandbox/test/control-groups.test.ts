import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { delegate, ownGroups, prepareHostGroups } from '../src/control-groups.ts'

const UNIFIED_MOUNT = '30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n'
const LEGACY_MOUNTS = `31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 20 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`

t.test('version 2 has one folder for both, if the group has the controllers', async (t) => {
  const groups = '0::/system.slice/carpool.service\n'
  const folder = '/sys/fs/cgroup/system.slice/carpool.service'
  t.strictSame(
    [...ownGroups(groups, UNIFIED_MOUNT, (one) => (one === folder ? 'cpu memory pids\n' : ''))],
    [
      ['memory', { version: 2, folder }],
      ['pids', { version: 2, folder }],
    ],
  )
  t.strictSame([...ownGroups(groups, UNIFIED_MOUNT, () => 'cpu pids')], [['pids', { version: 2, folder }]])
  t.strictSame([...ownGroups(groups, UNIFIED_MOUNT, () => '')], [])
})

t.test('version 1 has one for each, and wins where both are mounted', async (t) => {
  const groups = '9:pids:/\n4:memory:/with:colon/x\n0::/\n'
  t.strictSame(
    [...ownGroups(groups, LEGACY_MOUNTS, () => 'hugetlb')],
    [
      ['memory', { version: 1, folder: '/sys/fs/cgroup/memory/with:colon/x' }],
      ['pids', { version: 1, folder: '/sys/fs/cgroup/pids' }],
    ],
  )
})

t.test('in a container the mount begins at its own group', async (t) => {
  const mounts = '30 20 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n'
  t.equal(ownGroups('0::/docker/abc/x\n', mounts, () => 'memory').get('memory')?.folder, '/sys/fs/cgroup/x')
})

t.test('nothing where there is nothing', async (t) => {
  t.equal(ownGroups('', '', () => '').size, 0)
})

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

t.test('one that cannot be written is a problem', async (t) => {
  t.match(delegate(join(tmpdir(), 'carpool-nothing'), ['memory']), { problem: /ENOENT/ })
})

const UNIFIED = /^(?:\S+ ){4}(\S+) .* - cgroup2 /m.exec(readOrEmpty('/proc/self/mountinfo'))?.[1]

const made = join(UNIFIED ?? '/', `carpool-test-${process.pid}`)
const cannotMake = !canMake(made) && 'no control group of version 2 can be made here'

t.test('the kernel refuses a group the controllers that it does not have', { skip: cannotMake }, async (t) => {
  t.teardown(() => {
    rmdirSync(join(made, 'carpool-server'))
    rmdirSync(made)
  })
  t.match(delegate(made, ['nothing']), { problem: /^The group of the server cannot be divided: \w+\.$/ })
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

// On the control groups of this machine, where it lets us make some.

const LIMITS = { memoryBytes: 64 * 1024 * 1024, tasks: 16 }

const groups = prepareHostGroups(LIMITS)
const skip = groups.controllers.size < 2 && [...groups.missing.values()].join(' ')

/** The folder in which groups are made, for each controller. */
function parents(): readonly string[] {
  const group = groups.open()
  group.close()
  const folders = new Set([...group.folders.values()].map((folder) => dirname(folder)))
  group.remove()
  return [...folders]
}

t.test('a group has its limits, and goes when it is removed', { skip }, async (t) => {
  const group = groups.open()
  const memory = group.folders.get('memory')!
  const limitFile = existsSync(join(memory, 'memory.max')) ? 'memory.max' : 'memory.limit_in_bytes'
  t.equal(readFileSync(join(memory, limitFile), 'utf8').trim(), String(LIMITS.memoryBytes))
  t.equal(readFileSync(join(group.folders.get('pids')!, 'pids.max'), 'utf8').trim(), String(LIMITS.tasks))
  t.equal(group.descriptors.length, new Set(group.folders.values()).size)
  group.close()
  group.remove()
  for (const folder of group.folders.values()) t.notOk(existsSync(folder))
})

t.test('only the controllers that are asked for', { skip }, async (t) => {
  const group = prepareHostGroups(LIMITS, ['pids']).open()
  t.strictSame([...group.folders.keys()], ['pids'])
  group.close()
  group.remove()
})

t.test('what servers that are gone have left is taken away, and what still runs is not', { skip }, async (t) => {
  const [parent = ''] = parents()
  const gone = spawnSync('true').pid
  const [empty, populated, other] = [`carpool-${gone}-1`, `carpool-${gone}-2`, `carpool-x-${gone}`].map((name) =>
    join(parent, name),
  )
  for (const folder of [empty!, populated!, other!]) mkdirSync(folder)
  const living = spawn('sleep', ['1000'])
  t.teardown(async () => {
    living.kill()
    await once(living, 'exit')
    for (const folder of [populated!, other!]) rmdirSync(folder)
  })
  writeFileSync(join(populated!, 'cgroup.procs'), String(living.pid))
  prepareHostGroups(LIMITS, undefined, true)
  t.ok(existsSync(empty!), 'who only looks removes nothing')
  prepareHostGroups(LIMITS)
  t.notOk(existsSync(empty!))
  t.ok(existsSync(populated!), 'it may be that of somebody who has the same numbers for other processes')
  t.ok(existsSync(other!), 'not ours')
  t.equal(living.exitCode, null)
})

t.test('nothing is left of a try', { skip }, async (t) => {
  for (const parent of parents())
    t.notOk(
      readdirSync(parent).some((name) => name.startsWith(`carpool-${process.pid}-`)),
      parent,
    )
})
