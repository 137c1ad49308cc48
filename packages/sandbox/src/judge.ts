import type { LayerName } from './layers.ts'
import type { AttemptName, AttemptResult } from './probe/attempts.ts'
import type { OwnFacts } from './probe/facts.ts'

/** What was seen of a process in the cage, and what to hold it against. */
export interface Evidence {
  /** What the process could do without Node.js' permission model, by its own account. */
  readonly results: Readonly<Partial<Record<AttemptName, AttemptResult>>>
  /** What it could do with that; why nothing is known, if it is not. */
  readonly resultsWithPermission: Readonly<Partial<Record<AttemptName, AttemptResult>>> | string
  readonly facts: OwnFacts
  /** The same of the server. */
  readonly serverFacts: Pick<OwnFacts, 'namespaces' | 'things'>
  /** Whether it was in the control groups that were made for it, and in how many. */
  readonly joined: { readonly memory: boolean; readonly pids: boolean }
  readonly uid: number
}

export interface Verdict {
  readonly holds: boolean
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

/** Whether each layer does what it is there for. Pure: it goes by what was seen, never by what was asked for. */
export const JUDGES: Readonly<Record<LayerName, (evidence: Evidence) => Verdict>> = {
  'permission': ({ resultsWithPermission }) => {
    if (typeof resultsWithPermission === 'string') return failed(`It could not be tried: ${resultsWithPermission}`)
    const passed = PERMISSION_ATTEMPTS.find((name) => resultsWithPermission[name] !== DENIED)
    return passed === undefined
      ? held('Node.js refused to read, write, connect, and start programs and threads.')
      : failed(`Node.js did not refuse to ${passed}.`)
  },
  'inheritance': ({ facts, serverFacts }) => {
    const variable = facts.environment.find((name) => !HARMLESS_VARIABLES.has(name))
    if (variable !== undefined) return failed(`It had the variable ${variable} in its environment.`)
    const thing = facts.things.find((one) => serverFacts.things.includes(one))
    if (thing !== undefined) return failed('It had a descriptor of the server open.')
    return held('It had no variables, and no descriptors that the server has.')
  },
  'rlimits': ({ facts: { limits } }) => {
    if (limits.core_file_size_blocks !== 0) return failed('It may leave core dumps.')
    if (limits.file_size_blocks !== 0) return failed('It may write files.')
    return held(`No core dumps, no written files, ${limits.open_files} descriptors at most.`)
  },
  'user': ({ facts, uid }) => {
    if (facts.uid !== uid || facts.gid !== uid) return failed(`It ran as user ${facts.uid}.`)
    if (facts.groups.some((group) => group !== uid)) return failed('It kept groups of the server.')
    return held(`It ran as user ${uid}, in no other group.`)
  },
  'no-new-privileges': ({ facts }) => {
    if (facts.hasNoNewPrivileges !== true) return failed('It may get new privileges.')
    if (!/^0+$/.test(facts.capabilities ?? '')) return failed('It had capabilities.')
    return held('It had no capabilities, and no way to get any.')
  },
  'user-namespace': (evidence) => ofOwn(evidence, 'user'),
  'network-namespace': (evidence) => ofOwn(evidence, 'net', ['connect to a TCP port', 'connect to an abstract UNIX socket']),
  'mount-namespace': (evidence) =>
    ofOwn(evidence, 'mnt', ['read a file', 'list a folder', 'write a file', 'connect to a UNIX socket']),
  'pid-namespace': (evidence) =>
    ofOwn(evidence, 'pid', ['signal the server', 'see the processes of others', 'read the environment of the server']),
  'ipc-namespace': (evidence) => {
    const verdict = ofOwn(evidence, 'ipc')
    return verdict.holds ? ofOwn(evidence, 'uts') : verdict
  },
  // Without it, no packet gets an answer in an empty network either, but with another error.
  'seccomp': ({ results }) =>
    results['connect to a TCP port'] === 'EPERM' ? held('It could make no socket.') : failed('It could make a socket.'),
  'cgroup-memory': ({ joined }) => (joined.memory ? held('It was in a group of its own.') : failed('It was not in its group.')),
  'cgroup-tasks': ({ joined }) => (joined.pids ? held('It was in a group of its own.') : failed('It was not in its group.')),
}

function held(why: string): Verdict {
  return { holds: true, why }
}

function failed(why: string): Verdict {
  return { holds: false, why }
}

/** A namespace of its own, and nothing that should not go through went through. */
function ofOwn({ facts, serverFacts, results }: Evidence, namespace: string, attempts: readonly AttemptName[] = []): Verdict {
  const own = facts.namespaces[namespace]
  if (own === undefined || own === '' || own === serverFacts.namespaces[namespace])
    return failed("It was in the server's namespace.")
  const passed = attempts.find((name) => results[name] === 'done')
  if (passed !== undefined) return failed(`It could ${passed}.`)
  return held(attempts.length === 0 ? 'It was in a namespace of its own.' : `It could not ${attempts.join(', ')}.`)
}
