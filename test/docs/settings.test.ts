/** docs/settings.md lists every setting as the server knows it, and no others. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  CONFIG_VARIABLE,
  DEFAULT_CONFIG_FILE,
  describeRange,
  flagOf,
  SETTING_TOPICS,
  variableOf,
  type Setting,
} from '../../packages/server/src/settings/index.ts'
import { ROOT } from '../support/command.ts'

const text = readFileSync(join(ROOT, 'docs/settings.md'), 'utf8')

/** The rows of the table under a heading, without its head. */
function rowsUnder(title: string): string[] {
  const section = text.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
}

function rowOf(name: string, setting: Setting): string {
  const fallback = setting.default.toString()
  const unit = setting.type === 'number' ? setting.unit : ''
  const cells = [`\`${name}\``, fallback === '' ? '' : `\`${fallback}\``, unit, describeRange(setting), setting.help]
  return `| ${cells.join(' | ')} |`.replaceAll('  |', ' |')
}

for (const { title, settings } of SETTING_TOPICS) {
  t.test(title, async (t) => {
    t.strictSame(
      rowsUnder(title),
      Object.entries(settings).map(([name, setting]) => rowOf(name, setting)),
    )
  })
}

t.test('the topics, and no others', async (t) => {
  const titles = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)
  t.strictSame(
    titles,
    SETTING_TOPICS.map(({ title }) => title),
  )
})

t.test('the names by which settings are given', async (t) => {
  for (const name of [flagOf('maxHosts'), variableOf('maxHosts'), CONFIG_VARIABLE, DEFAULT_CONFIG_FILE])
    t.match(text, `\`${name}`)
})
