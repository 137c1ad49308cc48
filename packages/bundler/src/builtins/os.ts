/** `node:os` in a function: fixed facts, the same everywhere, that say nothing of the machine. */
import facts from 'carpool-node:facts'
import lists from 'carpool-node:lists'

const EOL = '\n'
const devNull = '/dev/null'
const { osConstants: constants } = lists
const GIB = 1024 ** 3

const arch = (): string => facts.arch
const platform = (): string => facts.platform
const type = (): string => 'Linux'
const release = (): string => '6.0.0'
const version = (): string => '#1 SMP'
const machine = (): string => 'x86_64'
const hostname = (): string => 'localhost'
const homedir = (): string => facts.root
const tmpdir = (): string => '/tmp'
const endianness = (): string => 'LE'
const uptime = (): number => Math.floor(performance.now() / 1000)
const loadavg = (): number[] => [0, 0, 0]
const totalmem = (): number => GIB
const freemem = (): number => GIB
const cpus = (): object[] => [{ model: 'isolate', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }]
const availableParallelism = (): number => 1
const networkInterfaces = (): object => ({})
const getPriority = (): number => 0
const setPriority = (): void => {}
const userInfo = (): object => ({ uid: 1000, gid: 1000, username: 'function', homedir: facts.root, shell: null })

export {
  arch,
  availableParallelism,
  constants,
  cpus,
  devNull,
  endianness,
  EOL,
  freemem,
  getPriority,
  homedir,
  hostname,
  loadavg,
  machine,
  networkInterfaces,
  platform,
  release,
  setPriority,
  tmpdir,
  totalmem,
  type,
  uptime,
  userInfo,
  version,
}
export default {
  arch,
  availableParallelism,
  constants,
  cpus,
  devNull,
  endianness,
  EOL,
  freemem,
  getPriority,
  homedir,
  hostname,
  loadavg,
  machine,
  networkInterfaces,
  platform,
  release,
  setPriority,
  tmpdir,
  totalmem,
  type,
  uptime,
  userInfo,
  version,
}
