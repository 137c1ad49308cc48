import t from 'tap'
import { findCpuQuota, Machine, type ReadSystemFile } from '../src/machine.ts'

function reading(files: Readonly<Record<string, string>>): ReadSystemFile {
  return (path) => files[path]
}

const V2_MOUNT = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n'
const V1_MOUNTS = [
  '31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu',
  '32 30 0:28 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct',
  '33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
].join('\n')

t.test('version 2: the tightest quota on the way to the root holds, with the time of its group', async (t) => {
  const quota = findCpuQuota(
    reading({
      '/proc/self/cgroup': '0::/app.slice/carpool.service\n',
      '/proc/self/mountinfo': V2_MOUNT,
      '/sys/fs/cgroup/app.slice/carpool.service/cpu.max': 'max 100000\n',
      '/sys/fs/cgroup/app.slice/cpu.max': '150000 100000\n',
      '/sys/fs/cgroup/app.slice/cpu.stat': 'usage_usec 4200\nuser_usec 4000\n',
    }),
  )
  t.equal(quota?.cores, 1.5)
  t.equal(quota?.usedUs(), 4200)
})

t.test('version 1: controllers have hierarchies of their own', async (t) => {
  const quota = findCpuQuota(
    reading({
      '/proc/self/cgroup': '9:name=systemd:/x\n4:cpuacct:/box\n3:cpu:/box\n0::/\n',
      '/proc/self/mountinfo': V1_MOUNTS,
      '/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu/box/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/cpuacct/box/cpuacct.usage': '7000000\n',
    }),
  )
  t.equal(quota?.cores, 0.5)
  t.equal(quota?.usedUs(), 7000)
})

t.test('in a container the mount begins at its own group', async (t) => {
  const quota = findCpuQuota(
    reading({
      '/proc/self/cgroup': '0::/docker/abc\n',
      '/proc/self/mountinfo': '30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n',
      '/sys/fs/cgroup/cpu.max': '200000 100000\n',
    }),
  )
  t.equal(quota?.cores, 2)
  t.equal(quota?.usedUs(), undefined)
})

t.test('without control groups, or a quota in them, there is none', async (t) => {
  t.equal(findCpuQuota(reading({})), undefined)
  const files = {
    '/proc/self/cgroup': '0::/a\n',
    '/proc/self/mountinfo': V2_MOUNT,
    '/sys/fs/cgroup/a/cpu.max': 'max 100000\n',
  }
  t.equal(findCpuQuota(reading(files)), undefined)
  t.equal(findCpuQuota(reading({ ...files, '/sys/fs/cgroup/a/cpu.max': 'garbage' })), undefined)
})

t.test('a machine has the cores that its quota and its affinity leave', async (t) => {
  const files = {
    '/proc/self/cgroup': '0::/\n',
    '/proc/self/mountinfo': V2_MOUNT,
    '/proc/self/status': 'Name:\tnode\nCpus_allowed_list:\t0\n',
    '/sys/fs/cgroup/cpu.max': '70000 100000\n',
  }
  const small = new Machine(reading(files))
  t.same([small.cores, small.wholeCores], [0.7, 1])
  const { '/sys/fs/cgroup/cpu.max': _, ...unlimited } = files
  t.equal(new Machine(reading(unlimited)).cores, 1)
  const { cores, busyCores, freeBytes } = new Machine(reading(unlimited)).load(1_000)
  t.equal(cores, 1)
  t.ok(busyCores >= 0 && busyCores <= cores)
  t.ok(freeBytes > 0)
})

t.test('the time that a quota has used is what is busy of it', async (t) => {
  let usedUs = 0
  const files: Record<string, string> = {
    '/proc/self/cgroup': '0::/\n',
    '/proc/self/mountinfo': V2_MOUNT,
    '/sys/fs/cgroup/cpu.max': '10000 100000\n',
  }
  const machine = new Machine((path) => (path.endsWith('cpu.stat') ? `usage_usec ${usedUs}\n` : files[path]))
  machine.load(0)
  usedUs = 100_000
  t.equal(Math.round(machine.load(1_000).busyCores * 100), 10)
})
