import { flushCompileCache } from 'node:module'
import { sandboxSentences } from '@carpool/sandbox'
import {
  CONFIG_VARIABLE,
  configSchema,
  DEFAULT_CONFIG_FILE,
  readConfigFile,
  resolveSettings,
  settingsInForce,
  startServer,
  type RunningServer,
} from '@carpool/server'
import { addSettingOptions, renderConfig, settingFlags } from '../setting-options.ts'
import { untilStopped } from '../until-stopped.ts'
import type { Call, CliCommand } from '../command.ts'

interface ServeOptions extends Readonly<Record<string, unknown>> {
  readonly config?: string
  readonly printConfig?: boolean
  readonly printConfigSchema?: boolean
}

export const serve: CliCommand<ServeOptions> = {
  jsonHelp: 'print one line of JSON on stdout when the server is ready, and all else on stderr',

  define(command) {
    command
      .option(
        '--config <file>',
        `JSON file with settings, named as in --print-config (default: ${DEFAULT_CONFIG_FILE} if there is one, env: ${CONFIG_VARIABLE})`,
      )
      .option('--print-config', 'print the settings that would be in force and where each comes from, and start nothing')
      .option('--print-config-schema', 'print the JSON Schema of the file with settings, and start nothing')
    addSettingOptions(command)
    command.addHelpText('after', '\nA flag wins over the environment, which wins over the file, which wins over the default.')
  },

  async run(call) {
    const { options, io, output } = call
    if (options.printConfigSchema) return output.raw(Buffer.from(`${JSON.stringify(configSchema(), null, 2)}\n`))
    const file = readConfigFile({ flag: options.config, env: io.env, folder: process.cwd() })
    const flags = settingFlags(options)
    if (options.printConfig) {
      const settings = settingsInForce(flags, io.env, { file })
      return output.answer({ configFile: file?.path ?? null, settings }, renderConfig(settings, file?.path, io.stdout))
    }
    const stopped = untilStopped((line) => output.warn(line))
    const server = await startServer(resolveSettings(flags, io.env, { file }))
    try {
      if (await isReadyBefore(stopped, server.ready)) announce(call, server)
      // Else only a server that ends in order would keep what it compiled for the next start.
      flushCompileCache()
      await stopped
    } finally {
      await server.close()
    }
  },
}

async function isReadyBefore(stopped: Promise<unknown>, ready: Promise<void>): Promise<boolean> {
  return await Promise.race([ready.then(() => true), stopped.then(() => false)])
}

function announce({ output }: Call<ServeOptions>, { url, adminUrl, sandbox }: RunningServer): void {
  output.answer(
    { ready: true, url, adminUrl, sandbox },
    [
      'Carpool is ready.',
      `  functions      ${url}/<name>/`,
      `  control plane  ${adminUrl}`,
      sandboxSentences(sandbox).join(' '),
      'Deploy a function with: carpool deploy <path>',
      'Stop with Ctrl+C.',
    ].join('\n'),
  )
}
