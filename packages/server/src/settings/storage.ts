import type { Setting } from './setting.ts'

/** What the server keeps, and what it says. */
export const STORAGE = {
  data: { type: 'text', default: '.carpool', help: 'folder for bundles, metadata, logs and the ledger' },
  secretKeyFile: {
    type: 'text',
    default: '',
    help: 'file with the key that the secrets of functions are encrypted with; made if there is none; empty: secret-key in the data folder',
  },
  maxBundleBytes: {
    type: 'number',
    default: 10 * 1024 * 1024,
    min: 1,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    help: 'largest bundle that a deploy may send',
  },
  retentionDays: {
    type: 'number',
    default: 30,
    min: 1,
    max: 3_650,
    unit: 'days',
    help: 'how long the records of single invocations are kept; hourly totals stay',
  },
  logLevel: {
    type: 'text',
    default: 'info',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    help: 'least level of the server log, which goes to stderr',
  },
} as const satisfies Record<string, Setting>
