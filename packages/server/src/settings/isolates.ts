import { checkFunctionName } from '@carpool/core'
import type { Setting } from './setting.ts'

/** What a host process keeps, and how its isolates share its core. */
export const ISOLATES = {
  maxIsolates: {
    type: 'number',
    default: 500,
    min: 1,
    max: 10_000,
    unit: 'isolates',
    help: 'most functions kept warm in one host process; the least recently used leaves first',
  },
  prewarm: {
    type: 'number',
    default: 2,
    min: 0,
    max: 64,
    unit: 'isolates',
    help: 'blank isolates kept ready in each host process',
  },
  keepWarm: {
    type: 'list',
    default: [],
    items: 'function names',
    checkItem: checkFunctionName,
    help: 'function whose isolate stays while others leave; repeatable',
  },
  hostMemoryMb: {
    type: 'number',
    default: 0,
    min: 192,
    max: 1_048_576,
    unit: 'MiB',
    zeroMeans: "a share of the machine's memory",
    help: "memory of a host process, which takes about 110 itself, above which idle isolates leave; 0: a share of the machine's",
  },
  enteredIsolates: {
    type: 'number',
    default: 4,
    min: 1,
    max: 64,
    unit: 'isolates',
    help: 'isolates of one host that may be entered at the same time',
  },
  entrySliceMs: {
    type: 'number',
    default: 10,
    min: 10,
    max: 1_000,
    unit: 'ms',
    help: 'an isolate that has been entered for this long no longer keeps others from being entered',
  },
  guestClock: {
    type: 'text',
    default: 'frozen',
    choices: ['frozen', 'running'],
    help: 'whether the time that functions read stands still while they run, or goes on: a fine clock helps to spy on neighbours',
  },
  webAssembly: {
    type: 'text',
    default: 'off',
    choices: ['off', 'on'],
    help: 'whether functions may use WebAssembly; a memory counts against their limit with the most that it may grow to',
  },
} as const satisfies Record<string, Setting>
