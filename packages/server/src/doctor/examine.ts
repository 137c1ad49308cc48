import { CarpoolError } from '@carpool/core'
import { requireLayers, type LayerReport, type Sandbox } from '@carpool/sandbox'
import { hostProgram } from '../host-program.ts'
import { hostPrograms } from '../host-programs.ts'
import { openSandbox, requiredLayers } from '../host-sandbox.ts'
import type { ServerSettings } from '../settings.ts'
import { checkAddon, checkDataFolder, checkNode, checkPort, type Check } from './checks.ts'
import { tryHost } from './try-host.ts'

/** What a server would find on this machine, with these settings. */
export interface Examination {
  readonly checks: readonly Check[]
  /** The layers around host processes, the innermost first. */
  readonly layers: readonly LayerReport[]
}

/** Looks at all that a server needs, without starting one. Takes about a second. */
export async function examine(settings: ServerSettings): Promise<Examination> {
  const { version, platform, arch, versions } = process
  const sandbox = await openSandbox(settings, undefined, true)
  const checks = [
    checkNode(version.slice(1)),
    checkAddon(platform, arch, versions.modules),
    await checkHost(settings, sandbox),
    checkSandbox(settings, sandbox),
    checkDataFolder(settings.data),
    await checkPort('port', settings),
    await checkPort('adminPort', settings),
  ]
  return { checks, layers: sandbox.layers }
}

async function checkHost(settings: ServerSettings, sandbox: Sandbox): Promise<Check> {
  const program = hostProgram(settings, await hostPrograms(), sandbox)
  const problem = await tryHost({ ...program, cage: sandbox })
  return problem === undefined
    ? { name: 'host process', state: 'ok', detail: 'One was started in the sandbox, and made an isolate.' }
    : { name: 'host process', state: 'failed', detail: `One did not start: ${problem}` }
}

/** What is not asked for and not there is a warning. */
function checkSandbox(settings: ServerSettings, { layers }: Sandbox): Check {
  const name = 'sandbox'
  try {
    const required = requiredLayers(settings)
    if (required !== undefined) requireLayers(layers, required)
  } catch (cause) {
    return { name, state: 'failed', detail: CarpoolError.from(cause).message }
  }
  const on = layers.filter(({ state }) => state === 'on').length
  return { name, state: on === layers.length ? 'ok' : 'warning', detail: `${on} of ${layers.length} layers are on.` }
}
