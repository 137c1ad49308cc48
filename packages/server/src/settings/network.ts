import type { Setting } from './setting.ts'

/** Where the server listens, what it takes in, and how it stops. */
export const NETWORK = {
  host: { type: 'text', default: '127.0.0.1', help: 'address of the data plane' },
  port: { type: 'number', default: 8080, min: 0, max: 65_535, unit: 'port', help: 'port of the data plane; 0 picks a free one' },
  adminPort: {
    type: 'number',
    default: 8081,
    min: 0,
    max: 65_535,
    unit: 'port',
    help: 'port of the control plane, on loopback; 0 picks a free one',
  },
  maxBodyBytes: {
    type: 'number',
    default: 6 * 1024 * 1024,
    min: 0,
    max: 256 * 1024 * 1024,
    unit: 'bytes',
    help: 'largest body of a request, and of a response',
  },
  allowEgress: {
    type: 'list',
    default: [],
    items: 'address ranges',
    help: 'private address range that functions may fetch from, in CIDR form; repeatable',
  },
  graceMs: {
    type: 'number',
    default: 25_000,
    min: 0,
    max: 600_000,
    unit: 'ms',
    help: 'longest time that calls under way get when the server is told to stop',
  },
} as const satisfies Record<string, Setting>
