import type { Setting } from './setting.ts'

/** What is done about functions that harm host processes, and when hosts are replaced. */
export const CONTAINMENT = {
  quarantineAfter: {
    type: 'number',
    default: 2,
    min: 1,
    max: 1_000,
    unit: 'strikes',
    help: 'host processes that a function may harm before it gets one of its own',
  },
  disableAfter: {
    type: 'number',
    default: 4,
    min: 1,
    max: 1_000,
    unit: 'strikes',
    help: 'host processes that a function may harm before it is disabled until an operator enables it',
  },
  strikeWindowMs: {
    type: 'number',
    default: 600_000,
    min: 1_000,
    max: 86_400_000,
    unit: 'ms',
    help: 'how long a harmed host process counts against a function',
  },
  quarantineHosts: {
    type: 'number',
    default: 4,
    min: 1,
    max: 64,
    unit: 'processes',
    help: 'most processes for functions in quarantine; when there are more such functions, they share',
  },
  poisonedDrainMs: {
    type: 'number',
    default: 10_000,
    min: 0,
    max: 900_000,
    unit: 'ms',
    help: 'how long the other calls of a harmed host process get to end before it is killed',
  },
  hostMaxAgeMs: {
    type: 'number',
    default: 86_400_000,
    min: 1_000,
    max: 2_592_000_000,
    unit: 'ms',
    zeroMeans: 'no limit',
    help: 'age at which a host process is replaced, without failing a call; up to a fifth earlier; 0: no limit',
  },
  hostMaxInvocations: {
    type: 'number',
    default: 10_000_000,
    min: 1,
    max: 1_000_000_000,
    unit: 'invocations',
    zeroMeans: 'no limit',
    help: 'invocations after which a host process is replaced in the same way; 0: no limit',
  },
} as const satisfies Record<string, Setting>
