import type { SandboxPlan } from '../../src/command.ts'
import type { LayerName } from '../../src/layers.ts'

/** A plan for pure functions: nothing of it need be there. */
export function planOf(wanted: readonly LayerName[], rest: Partial<SandboxPlan> = {}): SandboxPlan {
  return {
    wanted: new Set(wanted),
    tools: { sh: '/bin/sh', setpriv: '/usr/bin/setpriv', bubblewrap: '/usr/bin/bwrap' },
    folders: ['/program'],
    libraries: ['/lib/libc.so'],
    serverUid: 0,
    uid: 4711,
    userTasks: 100,
    ownProc: true,
    filter: new Uint8Array(8),
    ...rest,
  }
}
