import { spawn, type ChildProcess } from 'node:child_process'
import { CarpoolError } from '@carpool/core'

/** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
export function spawnHost({
  nodePath,
  nodeArguments,
}: {
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
}): ChildProcess {
  let child: ChildProcess | undefined
  try {
    child = spawn(nodePath, nodeArguments, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], env: {} })
    if (child.stdio?.[3] !== undefined && child.stdio[3] !== null) return child
  } catch (cause) {
    throw new CarpoolError('no-host', 'A host process could not be started.', { cause })
  }
  // Without descriptors left, Node.js gives a child without streams, and tells why in an event of its own.
  child.once('error', () => {})
  throw new CarpoolError('no-host', 'A host process could not be started.')
}
