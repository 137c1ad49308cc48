import { setTimeout as delay } from 'node:timers/promises'
import type { FunctionState } from '@carpool/core'
import type { BenchServer } from '../lib/bench-server.ts'
import { epochMs } from '../lib/load/timed-call.ts'

export interface DisablingWatch {
  /** Gives when each function was first seen disabled, in ms of the epoch, and how all functions stand at the end. */
  stop(): Promise<{ readonly disabledAtMs: ReadonlyMap<string, number>; readonly states: ReadonlyMap<string, FunctionState> }>
}

const LOOK_MS = 100

/** Watches which functions are disabled, ten times a second. */
export function watchDisabling(server: BenchServer): DisablingWatch {
  const stopping = new AbortController()
  const disabledAtMs = new Map<string, number>()
  const states = new Map<string, FunctionState>()
  const look = async (): Promise<void> => {
    for (const { name, state } of await server.functions()) {
      states.set(name, state)
      if (state === 'disabled' && !disabledAtMs.has(name)) disabledAtMs.set(name, epochMs())
    }
  }
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      await look()
      await delay(LOOK_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  watching.catch(() => {})
  return {
    stop: async () => {
      stopping.abort()
      await watching
      await look()
      return { disabledAtMs, states }
    },
  }
}
