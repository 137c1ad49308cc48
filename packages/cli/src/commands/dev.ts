import type { DeploymentOptions } from '@carpool/bundler'
import { resolveSettings, startServer, variableOf } from '@carpool/server'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiClient } from '../api-client.ts'
import { addDeploymentOptions } from '../deployment.ts'
import { DevLoop } from '../dev-loop.ts'
import { addSettingOptions, settingFlags } from '../setting-options.ts'
import { untilStopped } from '../until-stopped.ts'
import type { CliCommand } from '../command.ts'

/** The function's own log is what one wants to see. */
const QUIET = { [variableOf('logLevel')]: 'warn' }

export const dev: CliCommand<DeploymentOptions & Readonly<Record<string, unknown>>> = {
  jsonHelp: 'print one line of JSON on stdout when the function is served, and all else on stderr',

  define(command) {
    addDeploymentOptions(command)
    // Without it nothing of a development server is kept.
    command.option('--data <text>', 'folder for bundles, metadata and logs (default: a temporary one)')
    addSettingOptions(command, ['data'])
  },

  async run({ args: [path = '.'], options, io, output }) {
    const stopped = untilStopped((line) => output.warn(line))
    const given = settingFlags(options)
    using folder = dataFolder(given['data'])
    const server = await startServer(resolveSettings({ ...given, data: folder.path }, { ...QUIET, ...io.env }))
    const loop = new DevLoop({ path, options, client: new ApiClient(server), io, output })
    try {
      const { url, adminUrl } = server
      const deployed = await loop.start()
      output.answer(
        { ready: true, url, adminUrl, function: deployed ?? null },
        `${deployed === undefined ? 'Waiting for a change that mends it' : `Serving ${deployed.url}`}. Stop with Ctrl+C.`,
      )
      await stopped
    } finally {
      await loop.close()
      await server.close()
    }
  },
}

function dataFolder(given: unknown): Disposable & { readonly path: string } {
  if (typeof given === 'string') return { path: given, [Symbol.dispose]: () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'carpool-dev-'))
  // Hosts and the ledger may be about to write.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  const onExit = (): void => {
    try {
      remove()
    } catch {
      // What is left is in the folder of the system that is emptied now and then.
    }
  }
  // Also by a second signal, which ends the process at once.
  process.once('exit', onExit)
  const dispose = (): void => {
    process.off('exit', onExit)
    remove()
  }
  // In a folder of its own, or commands in the temp folder and below would find this server nearest.
  return { path: join(folder, 'data'), [Symbol.dispose]: dispose }
}
