import { Command } from 'commander'
import t from 'tap'
import { flagOf, resolveSettings, SETTINGS } from '@carpool/server'
import { addSettingOptions, settingFlags } from '../src/setting-options.ts'

function parse(...argv: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  addSettingOptions(command)
  command.parse(argv, { from: 'user' })
  return settingFlags(command.opts())
}

t.test('every setting of the server is an option', async (t) => {
  for (const [name, setting] of Object.entries(SETTINGS)) {
    t.strictSame(parse(flagOf(name), '7')[name], setting.type === 'list' ? ['7'] : '7', name)
  }
})

t.test('what is not given is left to the environment and the defaults', async (t) => {
  t.strictSame(resolveSettings(parse(), {}), resolveSettings({}, {}))
  t.equal(resolveSettings(parse(), { CARPOOL_PORT: '3000' }).port, 3000)
  t.equal(resolveSettings(parse('--port', '4000'), { CARPOOL_PORT: '3000' }).port, 4000)
})

t.test('a list setting may be repeated', async (t) => {
  const { allowEgress } = resolveSettings(parse('--allow-egress', '10.0.0.0/8', '--allow-egress', '192.168.0.0/16'), {})
  t.strictSame(allowEgress, ['10.0.0.0/8', '192.168.0.0/16'])
})

t.test('the help tells the default and the variable', async (t) => {
  const command = new Command('serve').configureHelp({ helpWidth: 200 })
  addSettingOptions(command)
  const help = command.helpInformation()
  t.match(help, /--admin-port <number> .*\(default: 8081, env: CARPOOL_ADMIN_PORT\)/)
  t.match(help, /--allow-egress <text> .*\(env: CARPOOL_ALLOW_EGRESS\)/)
  t.match(help, /\nHosts:\n +--min-hosts /, 'settings stand under their topic')
  t.notMatch(help, '--hosts ')
})

t.test('a command may have an option of its own for a setting', async (t) => {
  const command = new Command('dev')
  addSettingOptions(command, ['data'])
  t.notMatch(command.helpInformation(), '--data ')
  t.match(command.helpInformation(), '--port ')
})
