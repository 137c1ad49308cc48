import { resolveSettings, SETTINGS, startServer, variableOf } from '@carpool/server'
import { addSettingOptions, settingFlags } from '../setting-options.ts'
import { untilStopped } from '../signals.ts'
import type { Verb } from '../verb.ts'

export const serve: Verb<Readonly<Record<string, unknown>>> = {
  jsonHelp: 'print one line of JSON on stdout when the server is ready, and all else on stderr',

  define(command) {
    addSettingOptions(command, SETTINGS, variableOf)
  },

  async run({ options, io, output }) {
    const settings = resolveSettings(settingFlags(SETTINGS, options), io.env)
    const stopped = untilStopped()
    const server = await startServer(settings)
    const { url, adminUrl } = server
    output.answer(
      { ready: true, url, adminUrl },
      [
        'Carpool is ready.',
        `  functions      ${url}/<name>/`,
        `  control plane  ${adminUrl}`,
        'Deploy a function with: carpool deploy <path>',
        'Stop with Ctrl+C.',
      ].join('\n'),
    )
    await stopped
    await server.close()
  },
}
