import { LAYER_NAMES, isLayerName } from '@carpool/sandbox'
import { CarpoolError } from '@carpool/core'
import type { Setting } from './setting.ts'

/** The sandbox of host processes; docs/sandbox.md lists its layers. */
export const SANDBOX = {
  sandbox: {
    type: 'text',
    default: 'auto',
    choices: ['auto', 'require', 'off'],
    help: 'layers around host processes: all that this machine has; the same, and no start without the main ones; only what needs nothing',
  },
  sandboxRequire: {
    type: 'list',
    default: [],
    items: 'layers',
    choices: LAYER_NAMES,
    checkItem: checkLayer,
    help: 'layer without which the server does not start, in place of the main ones; repeatable',
  },
  hostUid: {
    type: 'number',
    default: 60_999,
    min: 1,
    max: 4_294_967_294,
    unit: 'user id',
    zeroMeans: "the server's own",
    help: "user and group of host processes, where the server runs as root; 0: the server's own",
  },
} as const satisfies Record<string, Setting>

function checkLayer(name: string): void {
  if (isLayerName(name)) return
  throw new CarpoolError(
    'invalid-setting',
    `There is no layer ${JSON.stringify(name)}: it must be one of ${LAYER_NAMES.join(', ')}.`,
  )
}
