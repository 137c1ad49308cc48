import type { NodeSupport, ServerAdapter } from '@carpool/core'
import { library, loadedLibrary } from './libraries.ts'
import { innerState } from './port.ts'
import { logUncaught } from './web-api/errors.ts'

let afterTurn: (() => void) | undefined
let carriesOver = false
let adapter: ServerAdapter | undefined
/** Without the addon nothing is carried by promises. */
let carriedHere: unknown

function carried(): unknown {
  const { carried } = innerState
  return carried === undefined ? carriedHere : carried()
}

function carry(value: unknown): void {
  const { carried } = innerState
  if (carried === undefined) carriedHere = value
  else carried(value)
}

/** For the bundle's factory. Whoever reaches it can change how their own function works, as with any of its globals. */
export const nodeSupport: NodeSupport = {
  afterTurn(run) {
    afterTurn = run
  },
  carried,
  carry,
  carryOverTimers() {
    carriesOver = true
  },
  inside(value) {
    const { inside } = innerState
    return inside === undefined ? undefined : inside(value)
  },
  resolveObjectURL: (url) => loadedLibrary('files')?.resolveObjectURL(url),
  module(name, environment) {
    const { makeNodeModule } = library(name === 'crypto' ? 'crypto' : 'compression')
    return makeNodeModule(environment as Parameters<typeof makeNodeModule>[0])
  },
  adaptServers(adapt) {
    adapter = adapt
  },
}

/** An entry begins: what the last one left is none of its business. */
export function beginTurn(): void {
  if (carriesOver) carry(undefined)
}

/** The synchronous part of an entry is over. */
export function endTurn(): void {
  if (afterTurn === undefined) return
  // It calls what user code may have replaced, and what it throws would reach the host as it is.
  try {
    afterTurn()
  } catch (error) {
    logUncaught(error, 'error at the end of an entry')
  }
}

/** What a timer that starts now carries along. */
export function carriedByTimer(): unknown {
  return carriesOver ? carried() : undefined
}

/** A timer fires. */
export function carryForTimer(value: unknown): void {
  if (carriesOver) carry(value)
}

/** See {@link ServerAdapter}. */
export function handlerOfServer(exported: unknown, isLast: boolean): ((...args: unknown[]) => unknown) | undefined {
  return adapter === undefined ? undefined : (adapter(exported, isLast) as ((...args: unknown[]) => unknown) | undefined)
}
