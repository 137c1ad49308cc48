import { totalmem } from 'node:os'
import { Machine, type HostProgram } from '@carpool/fleet'
import type { ServerSettings } from '../settings/table.ts'
import { HOST_FILES, hostReadPaths, type HostPrograms } from './host-files.ts'

/**
 * Node.js' permission model with leave to load the isolate addon, and nothing else: no network, no files, no child processes, no
 * workers. What a sandbox is tried with has these flags alone: with those for isolates, of which it makes none, its start takes
 * three times the CPU time.
 */
export const PERMISSION_FLAGS: readonly string[] = [
  '--permission',
  '--allow-addons',
  '--disable-warning=SecurityWarning',
  '--disable-sigusr1',
]

/**
 * What a host process gets from Node.js. `--no-node-snapshot` is what isolated-vm asks for: isolates with other snapshots than
 * Node's own share the process.
 */
const HOST_FLAGS: readonly string[] = [
  '--no-node-snapshot',
  // Memory of an isolate that is given up goes back to the system; else V8 keeps it for isolates whose threads sleep.
  '--no-memory-pool-share-memory-on-teardown',
  // Garbage is collected on the thread of the isolate whose it is: on its share of the CPU and on its bill, and not by helpers
  // that take the cores from everybody else.
  '--single-threaded-gc',
  // V8 puts no bound on the functions that wait for this compiler, whose memory is on no account: twenty took a gigabyte.
  '--no-maglev',
  // V8 asks all isolates which code of WebAssembly they run, under a lock of the process. isolated-vm holds on to each while it
  // is asked, and takes it down there if all others let go meanwhile, which waits for that lock for ever.
  '--no-wasm-code-gc',
  // Else V8 would drop code of all modules whenever memory is short, and keep what it drops.
  '--no-flush-liftoff-code',
  // Else each memory of WebAssembly, however small, takes 8 GiB of the addresses of the process, which has room for 16,000.
  '--disable-wasm-trap-handler',
  // Code of asm.js would be WebAssembly as well, whatever a setting says of that; it runs as any other.
  '--no-validate-asm',
  ...PERMISSION_FLAGS,
]

/** How to start a host process, with leave to read its addons. @param sandbox starts it with less than the server may do */
export function hostProgram(
  settings: ServerSettings,
  { host, runtime }: HostPrograms,
  sandbox: NonNullable<HostProgram['launcher']>,
): HostProgram {
  const { prewarm, maxIsolates, maxBodyBytes, enteredIsolates, entrySliceMs, guestClock } = settings
  const webAssembly = settings.webAssembly === 'on'
  const memoryBudgetBytes = hostMemoryBytes(settings)
  const readable = [...hostReadPaths(), LIBC_MARK]
  return {
    nodePath: process.execPath,
    // Named last for those who look at the list of processes: the program is what comes in.
    nodeArguments: [
      ...HOST_FLAGS,
      ...readable.map((path) => `--allow-fs-read=${path}`),
      '--input-type=module',
      '-',
      HOST_FILES.main,
    ],
    input: host,
    launcher: sandbox,
    setup: {
      type: 'setup',
      prewarm,
      maxIsolates,
      maxBodyBytes,
      enteredIsolates,
      entrySliceMs,
      longEntries: new Machine().wholeCores,
      memoryBudgetBytes,
      guestClock: guestClock === 'running' ? guestClock : 'frozen',
      webAssembly,
    },
    runtime,
  }
}

/** What hosts may take together of the machine's memory, or of the control group's: the rest is the server's and the system's. */
const MEMORY_SHARE = 0.8

/** Memory of one host process, in bytes, above which its idle isolates leave. */
export function hostMemoryBytes({ hostMemoryMb, maxHosts }: Pick<ServerSettings, 'hostMemoryMb' | 'maxHosts'>): number {
  // Where there is no limit it is larger than any machine.
  const bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return hostMemoryMb * 1024 * 1024 || Math.floor((bytes * MEMORY_SHARE) / maxHosts)
}

/** The addon's loader looks here for which C library it is to be loaded with. */
const LIBC_MARK = '/etc/alpine-release'
