const BUBBLEWRAP_REMEDY = 'Install bubblewrap, and let it make user namespaces.'
const CGROUP_REMEDY = 'Give the server a control group of its own to divide: Delegate=memory pids in a systemd unit.'

/** The layers of the sandbox around a host process, the outermost last. Each stands on its own: what one lets through the next may stop. */
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
