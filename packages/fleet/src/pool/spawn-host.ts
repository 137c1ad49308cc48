import { spawn, type ChildProcess } from 'node:child_process'
import type { Duplex } from 'node:stream'
import type { ProcessEnd } from '../health/suspects.ts'
import { CarpoolError } from '@carpool/core'

/** A host process that was started. Others may stand between it and the server, as the programs of a sandbox do. */
export interface HostHandle {
  /** The process that was started: it ends when the host does. */
  readonly child: ChildProcess
  /** The host process itself, as the server sees it; while it is on its way, the one that is becoming it. 0 if nothing was started. */
  pid(): number
  /** How the host ended, by how the child did. */
  endOf(exitCode: number | null, signal: NodeJS.Signals | null): ProcessEnd
  /** Ends it at once. */
  kill(): void
}

/** What starts host processes with less than the server may do. */
export interface HostCage {
  /** The child has the socket as descriptor 3. @throws Error of the system if the process cannot be started */
  spawn(program: HostCommand): HostHandle
}

export interface HostCommand {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** What the process reads on its standard input. Default: nothing. */
  readonly input?: string
}

/** A host with the socket to it. */
export interface SpawnedHost extends HostHandle {
  readonly socket: Duplex
}

/** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
export function spawnHost(command: HostCommand, cage: HostCage = NO_CAGE): SpawnedHost {
  let handle: HostHandle
  try {
    handle = cage.spawn(command)
  } catch (cause) {
    throw new CarpoolError('no-host', 'A host process could not be started.', { cause })
  }
  const socket = handle.child.stdio?.[3]
  if (socket !== undefined && socket !== null) return { ...handle, socket: socket as Duplex }
  // Without descriptors left, Node.js gives a child without streams, and tells why in an event of its own.
  handle.child.once('error', () => {})
  throw new CarpoolError('no-host', 'A host process could not be started.')
}

/** Starts the program as it is. */
const NO_CAGE: HostCage = {
  spawn: ({ nodePath, nodeArguments, input }) => {
    const child = spawn(nodePath, nodeArguments, { stdio: ['pipe', 'ignore', 'pipe', 'pipe'], env: {} })
    // A process that has ended by now has not read it.
    child.stdin?.on('error', () => {}).end(input)
    return {
      child,
      pid: () => child.pid ?? 0,
      endOf: (exitCode, signal) => ({ exitCode, signal }),
      kill: () => void child.kill('SIGKILL'),
    }
  },
}
