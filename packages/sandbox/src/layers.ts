import { CarpoolError, type MissingLayersInfo, type SandboxInfo } from '@carpool/core'

const BUBBLEWRAP_REMEDY = 'Install bubblewrap, and let it make user namespaces.'
const CGROUP_REMEDY = 'Give the server a control group of its own to divide: Delegate=memory pids in a systemd unit.'

/**
 * The layers of the sandbox around a host process, the outermost last. Each stands on its own: what one lets through the next
 * may stop.
 */
export const LAYERS = {
  'permission': {
    stops: 'Reading files other than the program, writing, connecting, starting processes or threads, by way of Node.js.',
    remedy: 'It is part of Node.js 26; start the server with that.',
  },
  'inheritance': {
    stops: 'Using open files, sockets or variables of the server, or its terminal.',
    remedy: 'Start the server without open descriptors of others.',
  },
  'rlimits': {
    stops: "Leaving memory on disk in a crash, filling the disk, using up the system's descriptors.",
    remedy: 'A shell at /bin/sh is needed.',
  },
  'user': {
    stops: "Reading files that are the server's alone, signalling or tracing the server.",
    remedy: 'Run the server as root and its program where everyone may read it; --host-uid picks the user.',
  },
  'no-new-privileges': {
    stops: 'Gaining rights by running a program that has more of them.',
    remedy: 'Install bubblewrap, or setpriv of util-linux.',
  },
  'user-namespace': {
    stops: 'Using rights over its own namespaces anywhere else.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'network-namespace': {
    stops: 'Connecting to anything: the internet, other machines, services of this one, abstract sockets.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'mount-namespace': {
    stops: 'Reading, writing, running or connecting to any file but Node.js, its libraries and the program.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'pid-namespace': {
    stops: 'Seeing, signalling or tracing other processes, other hosts among them; leaving processes behind.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'ipc-namespace': {
    stops: 'Sharing memory or message queues with other processes; learning the name of the machine.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'seccomp': {
    stops: 'Making sockets or processes, and calling parts of the kernel that a host has no use for.',
    remedy: BUBBLEWRAP_REMEDY,
  },
  'cgroup-memory': { stops: 'Taking the memory that the server and other hosts need.', remedy: CGROUP_REMEDY },
  'cgroup-tasks': { stops: 'Making so many threads or processes that nobody else can.', remedy: CGROUP_REMEDY },
} as const satisfies Record<string, LayerText>

interface LayerText {
  /** What code that got out of its isolate cannot do because of it, if every other layer is off. */
  readonly stops: string
  /** How to get it where it is missing. */
  readonly remedy: string
}

export type LayerName = keyof typeof LAYERS

export const LAYER_NAMES = Object.keys(LAYERS) as readonly LayerName[]

/** Layers that only bubblewrap puts on here. */
export const BUBBLEWRAP_LAYERS: ReadonlySet<LayerName> = new Set(
  LAYER_NAMES.filter((name) => LAYERS[name].remedy === BUBBLEWRAP_REMEDY),
)

export function isLayerName(name: string): name is LayerName {
  return Object.hasOwn(LAYERS, name)
}

/**
 * `on`: seen to work here. `off`: switched off, or it does not stop what it should. `unavailable`: this machine does not have
 * it.
 */
export type LayerState = 'on' | 'off' | 'unavailable'

/** A layer as it is on this machine. */
export interface LayerReport {
  readonly name: LayerName
  readonly state: LayerState
  /** What was seen, or what is missing, in a sentence for operators. */
  readonly why: string
  /** What it stops, in a sentence. */
  readonly stops: string
  /** How to get it, in a sentence. */
  readonly remedy: string
}

/** What `sandbox=require` means: of each row at least one must be on. */
const REQUIRED: ReadonlyArray<readonly LayerName[]> = [
  ['permission'],
  ['inheritance'],
  ['rlimits'],
  ['user', 'user-namespace'],
  ['network-namespace'],
  ['mount-namespace'],
  ['pid-namespace'],
]

/**
 * @param only the layers that must be on; empty: those that `sandbox=require` stands for
 * @throws CarpoolError `sandbox-unavailable`, naming each layer that is missing, why, and how to get it
 */
export function requireLayers(layers: readonly LayerReport[], only: readonly LayerName[] = []): void {
  const rows = only.length > 0 ? only.map((name) => [name]) : REQUIRED
  const details = rows.flatMap((row) => {
    const reports = layers.filter(({ name }) => row.includes(name))
    if (reports.some(({ state }) => state === 'on')) return []
    return [`${row.join(' or ')} (${reports.map(({ why, remedy }) => `${why} ${remedy}`).join(' ')})`]
  })
  if (details.length === 0) return
  throw new CarpoolError('sandbox-unavailable', `These layers of the sandbox are required and not on: ${details.join('; ')}.`)
}

/** Sums layers up: those that are off for the same reason stand together. Pure. */
export function sandboxInfo(layers: readonly LayerReport[]): SandboxInfo {
  const missing = layers.filter(({ state }) => state !== 'on')
  const byReason = Map.groupBy(missing, ({ why, remedy }) => `${why} ${remedy}`)
  const off = [...byReason.values()].map((group) => ({
    layers: group.map(({ name }) => name),
    why: group[0]!.why,
    remedy: group[0]!.remedy,
  }))
  return { on: layers.length - missing.length, total: layers.length, off }
}

/** The same without what is for admins alone. Pure. */
export function publicSandboxInfo({ on, total, off }: SandboxInfo): SandboxInfo {
  return { on, total, off: off.map(({ layers, remedy }) => ({ layers, remedy })) }
}

/**
 * How much of the sandbox there is, for people: first how many layers are on, then which are off, why, and what would bring
 * them. Joined with spaces it is one line. Pure.
 */
export function sandboxSentences({ on, total, off }: SandboxInfo): readonly string[] {
  if (off.length === 0) return [`Sandbox: all ${total} layers are on.`]
  return [`Sandbox: ${on} of ${total} layers are on.`, ...off.map(describeMissing)]
}

function describeMissing({ layers, why, remedy }: MissingLayersInfo): string {
  const what = `${layers.join(', ')} ${layers.length === 1 ? 'is' : 'are'} off`
  return [why === undefined ? `${what}.` : `${what}: ${why}`, remedy].join(' ')
}
