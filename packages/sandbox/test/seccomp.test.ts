import fc from 'fast-check'
import t from 'tap'
import { architectureOf, seccompFilter } from '../src/seccomp.ts'

const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
const EPERM = 0x0005_0000 | 1
const ENOSYS = 0x0005_0000 | 38
const CLONE_THREAD = 0x0001_0000

interface Call {
  readonly number: number
  readonly audit: number
  readonly argument?: number
}

/** What the kernel's filter machine does, for the instructions that there are. */
function run(filter: Uint8Array, { number, audit, argument = 0 }: Call): number {
  const view = new DataView(filter.buffer)
  const data = new Map([
    [0, number],
    [4, audit],
    [16, argument],
  ])
  let word = 0
  for (let at = 0; at < filter.length; at += 8) {
    const code = view.getUint16(at, true)
    const value = view.getUint32(at + 4, true)
    const jumps: Readonly<Record<number, boolean>> = {
      0x15: word === value,
      0x35: word >= value,
      0x45: (word & value) !== 0,
    }
    if (code === 0x06) return value
    if (code === 0x20) word = data.get(value) ?? Number.NaN
    else at += 8 * view.getUint8(at + (jumps[code] ? 2 : 3))
  }
  throw new Error('The filter ended without a verdict.')
}

for (const arch of ['x64', 'arm64']) {
  const target = architectureOf(arch)!
  const filter = seccompFilter(arch)!
  const verdict = (number: number, argument?: number): number =>
    run(filter, { number, audit: target.audit, ...(argument !== undefined && { argument }) })

  t.test(`${arch}: the calls of the list are denied, newer ones unknown, and all others allowed`, async (t) => {
    const denied = new Set(target.denied.values())
    for (const [name, number] of target.denied) t.equal(verdict(number), EPERM, name)
    t.equal(verdict(target.clone3), ENOSYS, 'clone3')
    fc.assert(
      fc.property(fc.nat(target.firstUnknown - 1), fc.nat(0xffff_ffff), (number, argument) => {
        fc.pre(!denied.has(number) && number !== target.clone && number !== target.clone3)
        return verdict(number, argument) === ALLOW
      }),
    )
    fc.assert(fc.property(fc.integer({ min: target.firstUnknown, max: 0xffff_ffff }), (number) => verdict(number) === ENOSYS))
  })

  t.test(`${arch}: clone makes threads and no processes`, async () => {
    fc.assert(
      fc.property(
        fc.nat(0xffff_ffff),
        (flags) => verdict(target.clone, flags) === ((flags & CLONE_THREAD) === 0 ? EPERM : ALLOW),
      ),
    )
  })

  t.test(`${arch}: semaphores are denied by each of their names`, async (t) => {
    const calls = arch === 'x64' ? { semop: 65, semtimedop: 220 } : { semop: 193, semtimedop: 192 }
    for (const [name, number] of Object.entries(calls)) t.equal(verdict(number), EPERM, name)
  })

  t.test(`${arch}: another calling convention ends the process`, async () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), fc.nat(1000), (audit, number) => {
        fc.pre(audit !== target.audit)
        return run(filter, { number, audit }) === KILL_PROCESS
      }),
    )
  })

  t.test(`${arch}: what Node.js and V8 live on is allowed`, async (t) => {
    const needed =
      arch === 'x64'
        ? { read: 0, write: 1, mmap: 9, mprotect: 10, futex: 202, epoll_pwait: 281, execve: 59, exit_group: 231, getrandom: 318 }
        : {
            read: 63,
            write: 64,
            mmap: 222,
            mprotect: 226,
            futex: 98,
            epoll_pwait: 22,
            execve: 221,
            exit_group: 94,
            getrandom: 278,
          }
    for (const [name, number] of Object.entries(needed)) t.equal(verdict(number), ALLOW, name)
  })
}

t.test('there is none for other architectures', async (t) => {
  t.equal(seccompFilter('riscv64'), undefined)
})
