import fc from 'fast-check'
import t from 'tap'
import { fallbackPlan, processesBefore, sandboxCommand, usesBubblewrap, type SandboxPlan } from '../src/command.ts'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES, type LayerName } from '../src/layers.ts'
import { planOf } from './support/plan.ts'

const PROGRAM = { nodePath: '/node', nodeArguments: ['--permission', '/program/main.ts'] }
const NODE = ['/node', '--permission', '/program/main.ts']

t.test('whatever is wanted, the chain ends with the program, in the root, with an empty environment', async () => {
  fc.assert(
    fc.property(fc.subarray([...LAYER_NAMES]), fc.nat(2), (wanted, joins) => {
      const { command, args, options } = sandboxCommand(PROGRAM, planOf(wanted), joins)
      const isAtEnd = [command, ...args].slice(-NODE.length).join('\0') === NODE.join('\0')
      return isAtEnd && options.cwd === '/' && Object.keys(options.env).length === 0 && options.detached
    }),
  )
})

t.test('without tools the program is started as it is, as another user if that is wanted', async (t) => {
  const { command, args, options, filterFd } = sandboxCommand(PROGRAM, planOf(['permission', 'user'], { tools: {} }))
  t.strictSame([command, ...args], NODE)
  t.strictSame(options, { cwd: '/', env: {}, detached: true, uid: 4711, gid: 4711 })
  t.equal(filterFd, undefined)
})

t.test('bubblewrap gets one flag for each namespace that is wanted, and only those', async (t) => {
  const flags = {
    'network-namespace': '--unshare-net',
    'pid-namespace': '--unshare-pid',
    'ipc-namespace': '--unshare-ipc',
  } as const
  for (const [name, flag] of Object.entries(flags)) {
    const { args } = sandboxCommand(PROGRAM, planOf([name as LayerName]))
    t.strictSame(
      Object.values(flags).filter((one) => args.includes(one)),
      [flag],
    )
    for (const always of ['--die-with-parent', '--new-session', '--unshare-user']) t.ok(args.includes(always), always)
  }
})

t.test('the root has only what is named, and nothing of it can be written', async (t) => {
  const { args } = sandboxCommand(PROGRAM, planOf(['mount-namespace', 'pid-namespace']))
  const mounted = args.flatMap((arg, index) => (/^--(?:ro-)?bind/.test(arg) ? [[arg, args[index + 1]]] : []))
  t.strictSame(mounted, [
    ['--ro-bind', '/lib/libc.so'],
    ['--ro-bind', '/node'],
    ['--ro-bind', '/program'],
    ['--ro-bind-try', '/etc/ld.so.cache'],
    ['--ro-bind-try', '/etc/alpine-release'],
  ])
  t.match(args.join(' '), '--proc /proc --remount-ro /')
})

t.test('the filter comes after the sockets and the control groups', async (t) => {
  t.equal(sandboxCommand(PROGRAM, planOf(['seccomp']), 0).filterFd, 4)
  const { filterFd, args } = sandboxCommand(PROGRAM, planOf(['seccomp']), 2)
  t.equal(filterFd, 6)
  t.match(args.join(' '), '--seccomp 6')
  t.match(args[1], /echo 0 2>\/dev\/null >&4; exec 4>&-\necho 0 2>\/dev\/null >&5; exec 5>&-\n/)
  t.equal(sandboxCommand(PROGRAM, planOf(['seccomp'], { filter: undefined })).filterFd, undefined)
})

t.test('who stands in front of the program', async (t) => {
  t.equal(processesBefore(planOf(['permission', 'rlimits', 'user', 'no-new-privileges'])), 0)
  t.equal(processesBefore(planOf(['network-namespace'])), 1)
  t.equal(processesBefore(planOf(['network-namespace', 'pid-namespace'])), 2)
  t.equal(processesBefore(planOf(['pid-namespace'], { tools: { sh: '/bin/sh' } })), 0)
  t.ok(usesBubblewrap(planOf(['seccomp'])))
})

t.test('without bubblewrap setpriv takes the way to new rights', async (t) => {
  const { args } = sandboxCommand(PROGRAM, planOf(['no-new-privileges']))
  t.match(args.join(' '), '/usr/bin/setpriv --no-new-privs')
  t.ok(args.includes('--bounding-set=-all'), 'who stays root keeps no capabilities')
  const asUser = sandboxCommand(PROGRAM, planOf(['user', 'no-new-privileges']))
  t.notOk(asUser.args.includes('--bounding-set=-all'), 'others may not say so')
  t.notMatch(sandboxCommand(PROGRAM, planOf(['no-new-privileges', 'pid-namespace'])).args.join(' '), 'setpriv')
})

const NO_PROC = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
const NO_SECCOMP = 'bwrap: prctl(PR_SET_SECCOMP): Invalid argument'
const NO_NAMESPACES = 'bwrap: Creating new namespace failed: Operation not permitted'

/** A plan and all that it falls back to where each fails with the next of these errors, or the last of them. */
function plans(best: SandboxPlan, errors: readonly string[]): readonly SandboxPlan[] {
  const tried = [best]
  for (
    let plan = fallbackPlan(best, errors[0]!);
    plan !== undefined;
    plan = fallbackPlan(plan, errors[tried.length - 1] ?? errors.at(-1)!)
  )
    tried.push(plan)
  return tried
}

const error = fc.constantFrom(NO_PROC, NO_SECCOMP, NO_NAMESPACES, 'It could not be started: EINVAL.', '')

t.test('whatever fails, each plan has less than the one before, and the last needs neither bubblewrap nor setpriv', async () => {
  fc.assert(
    fc.property(fc.subarray([...LAYER_NAMES]), fc.array(error, { minLength: 1 }), (wanted, errors) => {
      const tried = plans(planOf(wanted), errors)
      const last = tried.at(-1)!
      const keys = tried.map((plan) => [...plan.wanted].join() + String(plan.ownProc))
      return (
        !usesBubblewrap(last) &&
        !last.wanted.has('no-new-privileges') &&
        last.wanted.has('user') === wanted.includes('user') &&
        new Set(keys).size === keys.length &&
        tried.every(({ wanted }, index) => index === 0 || wanted.isSubsetOf(tried[index - 1]!.wanted))
      )
    }),
  )
})

t.test('it gives up no more than what the error is about', async (t) => {
  const best = planOf(LAYER_NAMES)
  const withoutProc = fallbackPlan(best, NO_PROC)
  t.match(withoutProc, { ownProc: false, wanted: best.wanted })
  t.strictSame([...best.wanted.difference(fallbackPlan(best, NO_SECCOMP)!.wanted)], ['seccomp'])
  t.strictSame(best.wanted.difference(fallbackPlan(best, NO_NAMESPACES)!.wanted), BUBBLEWRAP_LAYERS)
  t.strictSame(best.wanted.difference(fallbackPlan(withoutProc!, NO_PROC)!.wanted), BUBBLEWRAP_LAYERS)
  const [, unfiltered, unmounted, bare] = plans(best, ['It ended with SIGSYS.'])
  t.strictSame([...best.wanted.difference(unfiltered!.wanted)], ['seccomp'])
  t.match(unmounted, { ownProc: false, wanted: unfiltered!.wanted })
  t.strictSame(best.wanted.difference(bare!.wanted), BUBBLEWRAP_LAYERS)
})
