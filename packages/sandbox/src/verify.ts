import type { LayerName } from './layers.ts'
import type { AttemptName, AttemptResults, OwnFacts } from './run-probe.ts'

/** What was seen of a process in the sandbox, and what to compare it with. */
export interface Evidence {
  /** What the process could do without Node.js' permission model, by its own account. */
  readonly results: AttemptResults
  /** What it could do with that; why nothing is known, if it is not. */
  readonly resultsWithPermission: AttemptResults | string
  readonly facts: OwnFacts
  readonly serverFacts: Pick<OwnFacts, 'namespaces' | 'openFiles'>
  /** Whether it was in the control groups that were made for it. */
  readonly joined: { readonly memory: boolean; readonly pids: boolean }
  readonly uid: number
}

/** Whether a layer stops what it should, and what was seen, in a sentence. */
export interface Verification {
  readonly works: boolean
  readonly why: string
}

/** What Node.js answers if its permission model says no. */
const DENIED = 'ERR_ACCESS_DENIED'
/** Shells set these; they say nothing of the server, for the folder that they name is the root. */
const HARMLESS_VARIABLES = new Set(['PWD', 'OLDPWD', 'SHLVL', '_'])

/** Attempts of a probe with Node.js' permission model, and of one without. */
export const PERMISSION_ATTEMPTS: readonly AttemptName[] = [
  'read a file',
  'write a file',
  'connect to a TCP port',
  'connect to a UNIX socket',
  'run a program',
  'start a thread',
]
export const SYSTEM_ATTEMPTS: readonly AttemptName[] = [
  'read a file',
  'list a folder',
  'write a file',
  'read the environment of the server',
  'see the processes of others',
  'signal the server',
  'connect to a TCP port',
  'connect to a UNIX socket',
  'connect to an abstract UNIX socket',
]

/** Whether each layer does what it is there for. Pure: they go by what was seen, never by what was asked for. */
export const VERIFY: Readonly<Record<LayerName, (evidence: Evidence) => Verification>> = {
  'permission': ({ resultsWithPermission }) => {
    if (typeof resultsWithPermission === 'string') return fails(`It could not be tried: ${resultsWithPermission}`)
    const passed = PERMISSION_ATTEMPTS.find((name) => resultsWithPermission[name] !== DENIED)
    return passed === undefined
      ? works('Node.js refused to read, write, connect, and start programs and threads.')
      : fails(`Node.js did not refuse to ${passed}.`)
  },
  'inheritance': ({ facts, serverFacts }) => {
    const variable = facts.environment.find((name) => !HARMLESS_VARIABLES.has(name))
    if (variable !== undefined) return fails(`It had the variable ${variable} in its environment.`)
    if (facts.openFiles.some((file) => serverFacts.openFiles.includes(file)))
      return fails('It had a descriptor of the server open.')
    return works('It had no variables, and no descriptors that the server has.')
  },
  'rlimits': ({ facts: { limits } }) => {
    if (limits['core_file_size_blocks'] !== 0) return fails('It may leave core dumps.')
    if (limits['file_size_blocks'] !== 0) return fails('It may write files.')
    return works(`No core dumps, no written files, ${limits['open_files']} descriptors at most.`)
  },
  'user': ({ facts, uid }) => {
    if (facts.uid !== uid || facts.gid !== uid) return fails(`It ran as user ${facts.uid}.`)
    if (facts.groups.some((group) => group !== uid)) return fails('It kept groups of the server.')
    return works(`It ran as user ${uid}, in no other group.`)
  },
  'no-new-privileges': ({ facts }) => {
    if (!facts.hasNoNewPrivileges) return fails('It may get new privileges.')
    if (!/^0+$/.test(facts.capabilities ?? '')) return fails('It had capabilities.')
    return works('It had no capabilities, and no way to get any.')
  },
  'user-namespace': (evidence) => ownNamespace(evidence, 'user'),
  'network-namespace': (evidence) =>
    ownNamespace(evidence, 'net', ['connect to a TCP port', 'connect to an abstract UNIX socket']),
  'mount-namespace': (evidence) =>
    ownNamespace(evidence, 'mnt', ['read a file', 'list a folder', 'write a file', 'connect to a UNIX socket']),
  'pid-namespace': (evidence) =>
    ownNamespace(evidence, 'pid', ['signal the server', 'see the processes of others', 'read the environment of the server']),
  'ipc-namespace': (evidence) => {
    const ipc = ownNamespace(evidence, 'ipc')
    return ipc.works ? ownNamespace(evidence, 'uts') : ipc
  },
  // Without it, no packet gets an answer in an empty network either, but with another error.
  'seccomp': ({ results }) =>
    results['connect to a TCP port'] === 'EPERM' ? works('It could make no socket.') : fails('It could make a socket.'),
  'cgroup-memory': ({ joined }) => ownGroup(joined.memory),
  'cgroup-tasks': ({ joined }) => ownGroup(joined.pids),
}

function works(why: string): Verification {
  return { works: true, why }
}

function fails(why: string): Verification {
  return { works: false, why }
}

function ownGroup(hasJoined: boolean): Verification {
  return hasJoined ? works('It was in a group of its own.') : fails('It was not in its group.')
}

/** A namespace of its own, and nothing that should not go through went through. */
function ownNamespace(
  { facts, serverFacts, results }: Evidence,
  type: string,
  attempts: readonly AttemptName[] = [],
): Verification {
  const own = facts.namespaces[type]
  if (own === undefined || own === '' || own === serverFacts.namespaces[type]) return fails("It was in the server's namespace.")
  const passed = attempts.find((name) => results[name] === 'done')
  if (passed !== undefined) return fails(`It could ${passed}.`)
  return works(attempts.length === 0 ? 'It was in a namespace of its own.' : `It could not ${attempts.join(', ')}.`)
}
