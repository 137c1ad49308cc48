import type { NodeSupport, ServerAdapter } from '@carpool/core'
import { afterEntry, beginEntry } from './entry-end.ts'
import { SafeError } from './language/primordials.ts'
import { library, loadedLibrary } from './libraries.ts'
import { carried, carry, carryForTimer, carryOverTimers, innerState, tellCallsApart } from './port.ts'
import { openSocket } from './sockets.ts'
import { comesByChannel } from './web-api/fetch/body.ts'
import { bodyOfRequest, isRequest } from './web-api/fetch/request.ts'
import { logUncaught } from './web-api/errors.ts'

let afterTurn: (() => void) | undefined
let adapter: ServerAdapter | undefined
let compile: NodeSupport['webAssembly'] | undefined

/** For the bundle's factory. Whoever reaches it can change how their own function works, as with any of its globals. */
export const nodeSupport: NodeSupport = {
  afterTurn(run) {
    afterTurn = run
  },
  afterEntry: (run) => afterEntry(run),
  carried,
  carry,
  carryOverTimers: () => carryOverTimers(),
  inside(value) {
    const { inside } = innerState
    return inside === undefined ? undefined : inside(value)
  },
  resolveObjectURL: (url) => loadedLibrary('files')?.resolveObjectURL(url),
  module(name, environment) {
    const { makeNodeModule } = library(name === 'crypto' ? 'crypto' : 'compression')
    return makeNodeModule(environment as Parameters<typeof makeNodeModule>[0])
  },
  webAssembly(files) {
    const given = compile
    if (given === undefined)
      throw new SafeError('The WebAssembly files of a function are compiled when it is loaded, all at once.')
    compile = undefined
    return given(files)
  },
  tellCallsApart: () => tellCallsApart(),
  openSocket: (target, events) => openSocket(target, events),
  streams: (request) => isRequest(request) && comesByChannel(bodyOfRequest(request)),
  adaptServers(adapt) {
    adapter = adapt
  },
}

/** What a bundle compiles its files with, until the synchronous part of its module scope has run. */
export function offerModules(given: NodeSupport['webAssembly'] | undefined): void {
  compile = given
}

/** An entry begins: what the last one left is none of its business. */
export function beginTurn(): void {
  beginEntry()
  carryForTimer(undefined)
}

/** The synchronous part of an entry is over. */
export function endTurn(): void {
  if (afterTurn === undefined) return
  // It calls what user code may have replaced, and what it throws would reach the host as it is.
  try {
    afterTurn()
  } catch (error) {
    logUncaught(error, 'error at the end of an entry', false)
  }
}

/** See {@link ServerAdapter}. */
export function handlerOfServer(exported: unknown, isLast: boolean): ((...args: unknown[]) => unknown) | undefined {
  return adapter === undefined ? undefined : (adapter(exported, isLast) as ((...args: unknown[]) => unknown) | undefined)
}
