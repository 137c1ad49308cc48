import t from 'tap'
import { ownGroups } from '../src/cgroup/own-groups.ts'

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
