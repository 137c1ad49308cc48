import { endianness } from 'node:os'

// Instructions of the kernel's filter machine, linux/bpf_common.h.
const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_AT_LEAST = 0x35
const JUMP_IF_ANY_BIT = 0x45
const RETURN = 0x06

// What a filter may return, linux/seccomp.h.
const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
const ERROR = 0x0005_0000
const EPERM = 1
const ENOSYS = 38

// Where a filter finds what it judges: struct seccomp_data.
const NUMBER_AT = 0
const ARCHITECTURE_AT = 4
const FIRST_ARGUMENT_AT = 16

/** A call of `clone` with it makes a thread. */
const CLONE_THREAD = 0x0001_0000

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number]

/**
 * Compiles the filter of system calls for a host, as the kernel and bubblewrap take it. Denied calls fail with EPERM, unknown
 * ones with ENOSYS, which is what old kernels answer; what comes with another calling convention ends the process. Undefined if
 * there is none for this architecture.
 *
 * @param arch as in `process.arch`
 */
export function seccompFilter(arch: string): Uint8Array | undefined {
  const target = architectureOf(arch)
  if (target === undefined || endianness() !== 'LE') return undefined
  const { audit, clone, clone3, denied, firstUnknown } = target
  return assemble([
    [LOAD_WORD, 0, 0, ARCHITECTURE_AT],
    ...unless(JUMP_IF_EQUAL, audit, KILL_PROCESS),
    [LOAD_WORD, 0, 0, NUMBER_AT],
    // Also the calls of the x32 convention, whose numbers begin far above.
    ...when(JUMP_IF_AT_LEAST, firstUnknown, ERROR | ENOSYS),
    ...[...denied.values()].flatMap((number) => when(JUMP_IF_EQUAL, number, ERROR | EPERM)),
    // Its flags are in memory, where a filter cannot look; C libraries then take `clone`.
    ...when(JUMP_IF_EQUAL, clone3, ERROR | ENOSYS),
    [JUMP_IF_EQUAL, 1, 0, clone],
    [RETURN, 0, 0, ALLOW],
    [LOAD_WORD, 0, 0, FIRST_ARGUMENT_AT],
    ...unless(JUMP_IF_ANY_BIT, CLONE_THREAD, ERROR | EPERM),
    [RETURN, 0, 0, ALLOW],
  ])
}

function when(jump: number, value: number, result: number): readonly Instruction[] {
  return [
    [jump, 0, 1, value],
    [RETURN, 0, 0, result],
  ]
}

function unless(jump: number, value: number, result: number): readonly Instruction[] {
  return [
    [jump, 1, 0, value],
    [RETURN, 0, 0, result],
  ]
}

/** struct sock_filter: 16 bits of code, two jump distances of 8 bits, 32 bits of value. */
function assemble(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(instructions.length * 8)
  const view = new DataView(bytes.buffer)
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    view.setUint16(index * 8, code, true)
    view.setUint8(index * 8 + 2, ifTrue)
    view.setUint8(index * 8 + 3, ifFalse)
    view.setUint32(index * 8 + 4, value, true)
  }
  return bytes
}

/**
 * System calls that a host has no use for, with their numbers on x86-64 and on ARM64 (Linux:
 * arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h); `null` where there is none. The list is that
 * of containers' default filters, and besides: all that makes sockets and processes.
 */
const DENIED = {
  // Sockets: the host has the one that it inherited.
  socket: [41, 198],
  socketpair: [53, 199],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  accept: [43, 202],
  accept4: [288, 242],
  // Processes. `clone` is looked at more closely, for it makes threads too; `execve` must be there for Node.js itself.
  fork: [57, null],
  vfork: [58, null],
  execveat: [322, 281],
  // Other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  kcmp: [312, 272],
  pidfd_open: [434, 434],
  pidfd_getfd: [438, 438],
  pidfd_send_signal: [424, 424],
  // Namespaces and mounts.
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  move_mount: [429, 429],
  open_tree: [428, 428],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // Parts of the kernel with a history of faults.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  lookup_dcookie: [212, 18],
  // System V and POSIX queues.
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  semget: [64, 190],
  semop: [65, 193],
  semtimedop: [220, 192],
  semctl: [66, 191],
  msgget: [68, 186],
  msgsnd: [69, 189],
  msgrcv: [70, 188],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
  // The machine.
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  syslog: [103, 116],
  acct: [163, 89],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  adjtimex: [159, 171],
  clock_adjtime: [305, 266],
  vhangup: [153, 58],
  nfsservctl: [180, 42],
  personality: [135, 92],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  uselib: [134, null],
  ustat: [136, null],
  _sysctl: [156, null],
  create_module: [174, null],
  get_kernel_syms: [177, null],
  query_module: [178, null],
} as const satisfies Record<string, readonly [x64: number, arm64: number | null]>

/** What a filter has to know of an architecture. */
export interface Architecture {
  /** As the kernel tells a filter, AUDIT_ARCH_* of linux/audit.h. */
  readonly audit: number
  readonly clone: number
  readonly clone3: number
  readonly denied: ReadonlyMap<string, number>
  /** Numbers from here on are calls that are newer than this list, or of another calling convention. */
  readonly firstUnknown: number
}

/** The newest call of this list's kernel, Linux 6.1: `set_mempolicy_home_node` is 450 everywhere. */
const FIRST_UNKNOWN = 451

/** @param arch as in `process.arch`; undefined for one that there is no filter for */
export function architectureOf(arch: string): Architecture | undefined {
  if (arch === 'x64') return { audit: 0xc000_003e, clone: 56, clone3: 435, denied: deniedOn(0), firstUnknown: FIRST_UNKNOWN }
  if (arch === 'arm64') return { audit: 0xc000_00b7, clone: 220, clone3: 435, denied: deniedOn(1), firstUnknown: FIRST_UNKNOWN }
  return undefined
}

function deniedOn(column: 0 | 1): ReadonlyMap<string, number> {
  const rows = Object.entries<readonly [x64: number, arm64: number | null]>(DENIED)
  return new Map(rows.flatMap(([name, row]) => (row[column] === null ? [] : [[name, row[column]] as const])))
}
