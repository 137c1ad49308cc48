import { sandboxInfo, sandboxSentences } from '@carpool/sandbox'
import {
  type Check,
  CONFIG_VARIABLE,
  DEFAULT_CONFIG_FILE,
  type Examination,
  examine,
  readConfigFile,
  resolveSettings,
} from '@carpool/server'
import type { Writable } from 'node:stream'
import type { CliCommand } from '../command.ts'
import { type Column, renderTable } from '../format.ts'
import { addSettingOptions, settingFlags } from '../setting-options.ts'

interface DoctorOptions extends Readonly<Record<string, unknown>> {
  readonly config?: string
  readonly strict?: boolean
}

const EXIT_UNSOUND = 1

export const doctor: CliCommand<DoctorOptions> = {
  define(command) {
    command
      .option('--strict', 'exit with 1 also if there are warnings, or layers of the sandbox that are not on')
      .option(
        '--config <file>',
        `JSON file with settings, as for serve (default: ${DEFAULT_CONFIG_FILE} if there is one, env: ${CONFIG_VARIABLE})`,
      )
    addSettingOptions(command)
    command.addHelpText(
      'after',
      '\nNeeds no server, and changes nothing. Give it the settings that the server is to have. The exit code is 0 if it would start, else 1.',
    )
  },

  async run({ options, io, output }) {
    const file = readConfigFile({ flag: options.config, env: io.env, folder: process.cwd() })
    const examination = await examine(resolveSettings(settingFlags(options), io.env, { file }))
    const isSound = judge(examination, options.strict === true)
    output.answer({ ok: isSound, ...examination }, renderExamination(examination, io.stdout))
    return isSound ? 0 : EXIT_UNSOUND
  },
}

function judge({ checks, layers }: Examination, isStrict: boolean): boolean {
  if (!isStrict) return checks.every(({ state }) => state !== 'failed')
  return checks.every(({ state }) => state === 'ok') && layers.every(({ state }) => state === 'on')
}

type Layer = Examination['layers'][number]

const CHECK_COLUMNS: readonly Column<Check>[] = [
  { title: 'CHECK', text: ({ name }) => name },
  { title: 'STATE', text: ({ state }) => state },
  { title: 'FOUND', text: ({ detail }) => detail },
]

const LAYER_COLUMNS: readonly Column<Layer>[] = [
  { title: 'LAYER', text: ({ name }) => name },
  { title: 'STATE', text: ({ state }) => state },
  { title: 'WHAT IT STOPS', text: ({ stops }) => stops },
]

/**
 * What was found out about a machine, for people: the checks, the layers of the sandbox, and how to get those that are missing.
 */
export function renderExamination({ checks, layers }: Examination, stream: Writable): string {
  return [
    renderTable(CHECK_COLUMNS, checks, stream),
    renderTable(LAYER_COLUMNS, layers, stream),
    sandboxSentences(sandboxInfo(layers)).join('\n'),
  ].join('\n\n')
}
