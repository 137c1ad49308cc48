import { checkFunctionName, type DeployRequest } from '@carpool/core'
import { bundleFunction } from './bundle-function.ts'

/** What is given with a deploy; it wins over the function's own configuration. */
export interface DeploymentOptions {
  /** Default: `name` of its configuration, else made from the name of its folder or file. */
  readonly name?: string
  /**
   * `src/index.handler`: a file without its extension and one of its exports; or only an export. Default: `default`, else
   * `handler`.
   */
  readonly handler?: string
  /** Variables, which stand beside those of its configuration. */
  readonly env?: Readonly<Record<string, string>>
  /** Memory limit in MiB. */
  readonly memoryMb?: number
  /** Most CPU time of one call, in ms. */
  readonly cpuMs?: number
  /** Longest time to an answer, or to the head of one that streams, in ms. */
  readonly timeoutMs?: number
  /** Longest time that an answer that streams, or a WebSocket, stays open after its head, in ms; 0: no limit. */
  readonly streamMs?: number
  /** Longest time in which nothing comes or goes of what streams, in ms; 0: no limit. */
  readonly idleMs?: number
}

export interface Deployment {
  readonly name: string
  readonly request: DeployRequest
  /** Absolute paths of the files that the bundle was made from, but for packages. */
  readonly inputs: readonly string[]
}

/** The most that any server can be set to take; what this one takes it says itself. */
const MAX_BUNDLE_BYTES = 64 * 1024 * 1024

/**
 * Bundles a function and says what to deploy.
 * @param path a source file, or a folder with an entry in it
 * @throws CarpoolError if it does not build or its name or configuration is not valid
 */
export async function buildDeployment(path: string, options: DeploymentOptions = {}): Promise<Deployment> {
  const bundle = await bundleFunction(path, {
    limitBytes: MAX_BUNDLE_BYTES,
    ...(options.handler !== undefined && { handler: options.handler }),
  })
  const { code, sourceMap, handlerExport, suggestedName, config, inputs } = bundle
  const { memoryMb, cpuMs, timeoutMs: wallMs, streamMs, idleMs, concurrency } = { ...config, ...options }
  const given = { memoryMb, cpuMs, wallMs, streamMs, idleMs, concurrency }
  const limits = Object.entries(given).filter(([, limit]) => limit !== undefined)
  return {
    name: checkFunctionName(options.name ?? suggestedName),
    request: {
      code,
      sourceMap,
      ...(handlerExport !== undefined && { handlerExport }),
      limits: Object.fromEntries(limits),
      env: { ...config.env, ...options.env },
      ...(config.egress !== undefined && { egress: config.egress }),
    },
    inputs,
  }
}
