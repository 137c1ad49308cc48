import { bundleFunction } from '@carpool/bundler'
import { checkFunctionName, type DeployRequest, type FunctionInfo } from '@carpool/core'
import type { DeploymentOptions } from './deployment-options.ts'

/** The most that any server can be set to take; what this one takes it says itself. */
const MAX_BUNDLE_BYTES = 64 * 1024 * 1024

interface Deployment {
  readonly name: string
  readonly request: DeployRequest
  /** Absolute paths of the files that the bundle was made from, but for packages. */
  readonly inputs: readonly string[]
}

/** Bundles a function and says what to deploy. @throws CarpoolError if it does not build or its name or configuration is not valid */
export async function buildDeployment(path: string, options: DeploymentOptions): Promise<Deployment> {
  const bundle = await bundleFunction(path, {
    limitBytes: MAX_BUNDLE_BYTES,
    ...(options.handler !== undefined && { handler: options.handler }),
  })
  const { code, sourceMap, handlerExport, suggestedName, config, inputs } = bundle
  const { memoryMb, cpuMs, timeoutMs: wallMs, concurrency } = { ...config, ...options }
  const limits = Object.entries({ memoryMb, cpuMs, wallMs, concurrency }).filter(([, limit]) => limit !== undefined)
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

export function deployedText({ name, revision, codeBytes, url }: FunctionInfo): string {
  return `Deployed ${name}, revision ${revision}, ${Math.ceil(codeBytes / 1024)} KiB: ${url}`
}
