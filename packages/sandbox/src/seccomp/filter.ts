import { endianness } from 'node:os'
import { architectureOf } from './syscalls.ts'

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
 * Compiles the filter of system calls for a host, as the kernel and bubblewrap take it. Denied calls fail with EPERM, unknown ones with ENOSYS,
 * which is what old kernels answer; what comes with another calling convention ends the process. Undefined if there is none for this architecture.
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
