import type { NodeSupport } from '@carpool/core'

/** The parameter of the function that a bundle is; see assemble-script.ts. */
declare const carpoolSupport_: NodeSupport | undefined

let carried: unknown

/** For a bundle that runs without the runtime: what it needs most, within one entry. */
const alone: NodeSupport = {
  afterTurn() {},
  afterEntry() {},
  carried: () => carried,
  carry(value) {
    carried = value
  },
  carryOverTimers() {},
  inside: () => undefined,
  resolveObjectURL: () => undefined,
  module(name) {
    throw new Error(`node:${name} is a part of the runtime, without which this bundle runs.`)
  },
  webAssembly() {
    throw new Error('WebAssembly is compiled by the runtime, without which this bundle runs.')
  },
  tellCallsApart() {},
  openSocket() {
    throw new Error("Sockets are the runtime's, without which this bundle runs.")
  },
  streams: () => false,
  adaptServers() {},
}

/** What the runtime gives to the modules of Node.js. */
export const support: NodeSupport = (typeof carpoolSupport_ === 'undefined' ? undefined : carpoolSupport_) ?? alone
