import type { CagePlan } from './cage-plan.ts'

/**
 * Arguments of bubblewrap before the program's own. It takes all capabilities and the way to new ones in any case, and ends the host when
 * it ends itself or the server does. What is not named here is not there: no /dev, no /tmp, no shell.
 */
export function bubblewrapArguments(plan: CagePlan, nodePath: string, filterFd: number | undefined): readonly string[] {
  const { wanted } = plan
  return [
    '--unshare-user',
    ...(wanted.has('network-namespace') ? ['--unshare-net'] : []),
    ...(wanted.has('pid-namespace') ? ['--unshare-pid'] : []),
    ...(wanted.has('ipc-namespace') ? ['--unshare-ipc', '--unshare-uts', '--hostname', 'host', '--unshare-cgroup-try'] : []),
    '--die-with-parent',
    '--new-session',
    '--cap-drop',
    'ALL',
    ...mounts(plan, nodePath),
    ...(filterFd === undefined ? [] : ['--seccomp', String(filterFd)]),
  ]
}

/** Without them a C library may not find the others, or Node.js' addons not which C library there is. */
const SMALL_FILES = ['/etc/ld.so.cache', '/etc/alpine-release']

function mounts({ wanted, folders, libraries, ownProc }: CagePlan, nodePath: string): readonly string[] {
  // Node.js reads there how much memory it has.
  const proc = ownProc && wanted.has('pid-namespace') ? ['--proc', '/proc'] : ['--ro-bind', '/proc', '/proc']
  if (!wanted.has('mount-namespace'))
    return ['--dev-bind', '/', '/', ...(wanted.has('pid-namespace') ? proc : []), '--chdir', '/']
  const readOnly = [...libraries, nodePath, ...folders].flatMap((path) => ['--ro-bind', path, path])
  const ifPresent = SMALL_FILES.flatMap((path) => ['--ro-bind-try', path, path])
  return [...readOnly, ...ifPresent, ...proc, '--remount-ro', '/', '--chdir', '/']
}
