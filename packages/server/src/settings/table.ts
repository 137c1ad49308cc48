import { CarpoolError, checkFunctionName } from '@carpool/core'
import { parseRange } from '@carpool/egress'
import { isLayerName, LAYER_NAMES } from '@carpool/sandbox'
import type { ListSetting, NumberSetting, Setting, TextSetting } from './setting.ts'

/** Where the server listens, what it takes in, and how it stops. */
const NETWORK = {
  host: { ...text('127.0.0.1'), help: 'address of the data plane' },
  port: { ...whole(8080, 0, 65_535, 'port'), help: 'port of the data plane; 0 picks a free one' },
  adminPort: { ...whole(8081, 0, 65_535, 'port'), help: 'port of the control plane, on loopback; 0 picks a free one' },
  metricsAccess: {
    ...text('open', ['open', 'token']),
    help: 'who may read /metrics, which names the functions of all owners: whoever reaches the control plane, or bearers of an admin token',
  },
  maxBodyBytes: {
    ...whole(6 * 1024 * 1024, 0, 256 * 1024 * 1024, 'bytes'),
    help: 'largest body of a request, and of a response, that is held as a whole; what streams has no limit on its length',
  },
  maxHeaderBytes: {
    ...whole(16 * 1024, 8 * 1024, 256 * 1024, 'bytes'),
    help: 'most bytes of the first line and the headers of a request together',
  },
  maxHeaders: { ...whole(100, 1, 2_000, 'headers'), help: 'most headers of a request' },
  maxUrlBytes: { ...whole(8 * 1024, 64, 256 * 1024, 'bytes'), help: 'longest URL of a request' },
  headerTimeoutMs: {
    ...whole(10_000, 10, 600_000, 'ms'),
    help: 'time in which the headers of a request must arrive, on a new connection from its start',
  },
  bodyTimeoutMs: {
    ...whole(30_000, 10, 600_000, 'ms'),
    help: 'time in which the body of a request must arrive, while the function does not have it wait; what has come adds to it',
  },
  bodyBytesPerSecond: { ...whole(1_024, 1, 1_000_000_000, 'bytes'), help: 'how many bytes of a body add a second to its time' },
  answerTimeoutMs: {
    ...whole(30_000, 10, 600_000, 'ms'),
    help: 'how long a client may take nothing of its answer before the connection is cut',
  },
  maxConnections: {
    ...whole(20_000, 1, 1_000_000, 'connections'),
    help: 'most connections of clients at the same time, and no more than 65 in 100 of the files that the server may have open; idle ones make room for new ones',
  },
  addressConnections: {
    ...wholeOrZero(0, 1, 1_000_000, 'connections'),
    help: 'most connections of one IPv4 address, or of one IPv6 network of 64 bits, at the same time; 0: no limit',
  },
  maxBufferedBytes: {
    ...whole(512 * 1024 * 1024, 6 * 1024 * 1024, 64 * 1024 * 1024 * 1024, 'bytes'),
    help:
      'most bytes of request bodies, and of answers that clients have not taken, in memory; above it the slowest clients are ' +
      'cut off; whole bodies of the calls of one function, and of one owner beside others, take at most half of what is free',
  },
  maxHops: {
    ...whole(16, 1, 1_000, 'calls'),
    help: 'most calls in a row in which one function calls the next through this server',
  },
  maxNestedCalls: {
    ...whole(256, 1, 1_000_000, 'calls'),
    help: 'most calls that functions make through this server because of one call from outside, in a row or not',
  },
  allowEgress: {
    ...list('address ranges'),
    checkItem: parseRange,
    help: 'private address range that functions may connect to, in CIDR form or as an address, with all ports; repeatable',
  },
  denyEgress: {
    ...list('address ranges'),
    checkItem: parseRange,
    help: 'address range that functions may not connect to, whatever else opens it, such as your own public addresses; repeatable',
  },
  maxEgressConnections: {
    ...whole(10_000, 1, 1_000_000, 'connections'),
    help:
      'most connections that functions have open together, and no more than a quarter of the files that the server may have ' +
      'open, for fetches and sockets; one function, and one owner beside others, gets at most half of what others leave, and ' +
      'its further fetches and sockets wait; a function has 1000 sockets at most',
  },
  maxEgressConnectionsPerOrigin: {
    ...whole(10_000, 1, 1_000_000, 'connections'),
    help: 'most of these connections to one origin, shared out in the same way',
  },
  maxEgressBufferedBytes: {
    ...whole(256 * 1024 * 1024, 1024 * 1024, 64 * 1024 * 1024 * 1024, 'bytes'),
    help:
      'most bytes of requests and responses of open fetches, and of what streams of them and of sockets, in memory, shared out in ' +
      'the same way; what comes for a function that needs more waits, and what it sends fails',
  },
  graceMs: { ...whole(25_000, 0, 600_000, 'ms'), help: 'longest time that calls under way get when the server is told to stop' },
} satisfies Record<string, Setting>

/** What the server keeps, and what it says. */
const STORAGE = {
  data: { ...text('.carpool'), help: 'folder for bundles, metadata, logs and the ledger' },
  secretKeyFile: {
    ...text(''),
    help: 'file with the key that the secrets of functions are encrypted with; made if there is none; empty: secret-key in the data folder',
  },
  maxBundleBytes: { ...whole(10 * 1024 * 1024, 1, 64 * 1024 * 1024, 'bytes'), help: 'largest bundle that a deploy may send' },
  retentionDays: {
    ...whole(30, 1, 3_650, 'days'),
    help: 'how long the records of single invocations are kept; hourly totals stay',
  },
  logLevel: {
    ...text('info', ['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    help: 'least level of the server log, which goes to stderr',
  },
} satisfies Record<string, Setting>

/** How many host processes there are. Only a CPU that is full makes another one start; the number of calls never does. */
const SCALING = {
  minHosts: { ...whole(1, 1, 'cores', 'processes'), help: 'host processes that there always are' },
  maxHosts: {
    ...whole(0, 0, 'cores', 'processes'),
    help: 'most host processes, without the standby; 0: as many as the cores',
  },
  standbyHosts: { ...whole(1, 0, 8, 'processes'), help: 'host processes kept started for when one is needed' },
  hostStartTimeoutMs: {
    ...whole(10_000, 100, 120_000, 'ms'),
    help: 'a host process that is not ready by then is ended, and the next attempt waits',
  },
  saturationPercent: {
    ...whole(80, 1, 100, '%'),
    help: 'a host is saturated from this share of a core, or of its event loop, if entries wait as well',
  },
  saturationWindowMs: {
    ...whole(5_000, 1_000, 600_000, 'ms'),
    help: 'for how long every host must be saturated before one is added',
  },
  panicPercent: { ...whole(95, 1, 100, '%'), help: 'share from which the short window is enough; not below that of saturation' },
  panicWindowMs: { ...whole(1_000, 250, 60_000, 'ms'), help: 'the short window' },
  machineFullPercent: {
    ...whole(85, 1, 100, '%'),
    help: 'share of all cores, whoever uses them, from which another host would not help',
  },
  growPauseMs: { ...whole(5_000, 0, 600_000, 'ms'), help: 'least time between two added hosts' },
  shrinkWindowMs: {
    ...whole(60_000, 1_000, 3_600_000, 'ms'),
    help: 'for how long fewer hosts must have been enough before one leaves',
  },
  shrinkPauseMs: { ...whole(20_000, 0, 3_600_000, 'ms'), help: 'least time between two hosts that leave' },
  shrinkPercent: {
    ...whole(60, 1, 100, '%'),
    help: 'share of a core that each host that stays may come to have when one leaves',
  },
} satisfies Record<string, Setting>

/** Who may run now, who waits, and who is refused. */
const ADMISSION = {
  maxInFlight: { ...whole(20_000, 1, 1_000_000, 'invocations'), help: 'most invocations at the same time, in all' },
  ownerConcurrency: {
    ...whole(16_000, 1, 1_000_000, 'invocations'),
    help: 'most invocations at the same time of the functions of one owner',
  },
  hostLimitInitial: {
    ...whole(64, 1, 100_000, 'invocations'),
    help: 'how many invocations may be running in a host that has just started; those that wait for a timer or a fetch do not count',
  },
  hostLimitMin: { ...whole(4, 1, 100_000, 'invocations'), help: 'least that the limit of a host falls to' },
  hostLimitMax: { ...whole(1_000, 1, 100_000, 'invocations'), help: 'most that the limit of a host grows to' },
  runDelayTargetMs: {
    ...whole(5, 1, 1_000, 'ms'),
    help: 'how long an entry that is ready to run may wait for a core; above it the limit of its host falls',
  },
  maxQueued: {
    ...whole(10_000, 0, 1_000_000, 'invocations'),
    help: 'most invocations that wait for a place in a host; 0: what has none at once is refused',
  },
  maxQueueMs: { ...whole(30_000, 1, 900_000, 'ms'), help: 'longest wait for a place' },
  queueIntervalMs: {
    ...whole(1_000, 1, 60_000, 'ms'),
    help: 'how long waits may be longer than the target while the CPU is full, before calls are refused for those that still come',
  },
  queueTargetMs: {
    ...whole(100, 1, 10_000, 'ms'),
    help: 'the wait that is good when the CPU is full; who waits longer is refused first',
  },
} satisfies Record<string, Setting>

/** What a host process keeps, and how its isolates share its core. */
const ISOLATES = {
  maxIsolates: {
    ...whole(500, 1, 10_000, 'isolates'),
    help: 'most functions kept warm in one host process; the least recently used leaves first',
  },
  prewarm: { ...whole(2, 0, 64, 'isolates'), help: 'blank isolates kept ready in each host process' },
  keepWarm: {
    ...list('function names'),
    checkItem: checkFunctionName,
    help: 'function whose isolate stays while others leave; repeatable',
  },
  hostMemoryMb: {
    ...wholeOrZero(0, 192, 1_048_576, 'MiB'),
    help: "memory of a host process, which takes about 110 itself, above which idle isolates leave; 0: a share of the machine's",
  },
  enteredIsolates: { ...whole(4, 1, 64, 'isolates'), help: 'isolates of one host that may be entered at the same time' },
  entrySliceMs: {
    ...whole(10, 10, 1_000, 'ms'),
    help: 'an isolate that has been entered for this long no longer keeps others from being entered',
  },
  guestClock: {
    ...text('frozen', ['frozen', 'running']),
    help: 'whether the time that functions read stands still while they run, or goes on: a fine clock helps to spy on neighbours',
  },
  webAssembly: {
    ...text('off', ['off', 'on']),
    help: 'whether functions may compile WebAssembly while they run; .wasm files that they import are compiled when they are loaded',
  },
} satisfies Record<string, Setting>

/** What is done about functions that harm host processes, and when hosts are replaced. */
const CONTAINMENT = {
  quarantineAfter: {
    ...whole(2, 1, 1_000, 'strikes'),
    help: 'host processes that a function may harm before it gets one of its own',
  },
  disableAfter: {
    ...whole(4, 1, 1_000, 'strikes'),
    help: 'host processes that a function may harm before it is disabled until an operator enables it',
  },
  strikeWindowMs: {
    ...whole(600_000, 1_000, 86_400_000, 'ms'),
    help: 'how long a harmed host process counts against a function',
  },
  quarantineHosts: {
    ...whole(4, 1, 64, 'processes'),
    help: 'most processes for functions in quarantine; when there are more such functions, they share',
  },
  poisonedDrainMs: {
    ...whole(10_000, 0, 900_000, 'ms'),
    help: 'how long the other calls of a harmed host process get to end before it is killed',
  },
  hostMaxAgeMs: {
    ...wholeOrZero(86_400_000, 1_000, 2_592_000_000, 'ms'),
    help: 'age at which a host process is replaced, without failing a call; up to a fifth earlier; 0: no limit',
  },
  hostMaxInvocations: {
    ...wholeOrZero(10_000_000, 1, 1_000_000_000, 'invocations'),
    help: 'invocations after which a host process is replaced in the same way; 0: no limit',
  },
} satisfies Record<string, Setting>

/** The sandbox around host processes; docs/sandbox.md lists its layers. */
const SANDBOX = {
  sandbox: {
    ...text('auto', ['auto', 'require', 'off']),
    help: 'layers around host processes: all that this machine has; the same, and no start without the main ones; only what needs nothing',
  },
  sandboxRequire: {
    ...list('layers', LAYER_NAMES),
    checkItem: checkLayer,
    help: 'layer without which the server does not start, in place of the main ones; repeatable',
  },
  hostUid: {
    ...wholeOrZero(60_999, 1, 4_294_967_294, 'user id'),
    help: "user and group of host processes, where the server runs as root; 0: the server's own",
  },
} satisfies Record<string, Setting>

/** Every setting of the server. Flags, environment variables, the file, checks, help and schema come from this table. */
export const SETTINGS = { ...NETWORK, ...STORAGE, ...SCALING, ...ADMISSION, ...ISOLATES, ...CONTAINMENT, ...SANDBOX }

/** The settings by topic, in the order in which they are shown. */
export const SETTING_TOPICS: ReadonlyArray<{ readonly title: string; readonly settings: Readonly<Record<string, Setting>> }> = [
  { title: 'Network', settings: NETWORK },
  { title: 'Storage and log', settings: STORAGE },
  { title: 'Hosts', settings: SCALING },
  { title: 'Admission', settings: ADMISSION },
  { title: 'Isolates', settings: ISOLATES },
  { title: 'Containment', settings: CONTAINMENT },
  { title: 'Sandbox', settings: SANDBOX },
]

export type SettingName = keyof typeof SETTINGS
type ValueOf<S extends Setting> = S extends NumberSetting ? number : S extends ListSetting ? readonly string[] : string

/** The settings in force: typed, checked and frozen. */
export type ServerSettings = { readonly [K in SettingName]: ValueOf<(typeof SETTINGS)[K]> }

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}

/** A whole number from `min` to `max`. @param fallback its default */
function whole(fallback: number, min: number, max: number | 'cores', unit: string): Omit<NumberSetting, 'help'> {
  return { type: 'number', default: fallback, min, max, unit }
}

/** The same of a setting that may also be 0, which stands for something else, such as no limit. */
function wholeOrZero(...args: Parameters<typeof whole>): Omit<NumberSetting, 'help'> {
  return { ...whole(...args), orZero: true }
}

/** @param fallback empty: it may be empty @param choices absent: it may be any text */
function text(fallback: string, choices?: readonly string[]): Omit<TextSetting, 'help'> {
  return { type: 'text', default: fallback, ...(choices !== undefined && { choices }) }
}

/** @param choices absent: there are too many to name */
function list(items: string, choices?: readonly string[]): Omit<ListSetting, 'help' | 'checkItem'> {
  return { type: 'list', default: [], items, ...(choices !== undefined && { choices }) }
}

function checkLayer(name: string): void {
  if (isLayerName(name)) return
  throw new CarpoolError(
    'invalid-setting',
    `There is no layer ${JSON.stringify(name)}: it must be one of ${LAYER_NAMES.join(', ')}.`,
  )
}
