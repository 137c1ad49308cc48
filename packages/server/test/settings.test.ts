import t from 'tap'
import { resolveSettings, SETTINGS, variableOf } from '../src/settings.ts'

t.test('a flag wins over the environment, which wins over the default', async (t) => {
  t.equal(resolveSettings({}, {}).port, 8080)
  t.equal(resolveSettings({}, { CARPOOL_PORT: '1234' }).port, 1234)
  t.equal(resolveSettings({ port: '0' }, { CARPOOL_PORT: '1234' }).port, 0)
  t.strictSame(resolveSettings({}, { CARPOOL_ALLOW_EGRESS: '10.0.0.0/8, ::1/128' }).allowEgress, ['10.0.0.0/8', '::1/128'])
  t.ok(Object.isFrozen(resolveSettings({}, {})))
})

for (const [name, setting] of Object.entries(SETTINGS)) {
  if (setting.type !== 'number') continue
  for (const bad of ['', 'x', '-1', '1.5', 'NaN', 'Infinity', String(setting.max + 1)]) {
    t.test(`${name} ${JSON.stringify(bad)} is refused with its name and range`, async (t) => {
      const range = new RegExp(`${setting.min} to ${setting.max}`)
      t.throws(() => resolveSettings({ [name]: bad }, {}), { code: 'invalid-setting', message: range })
      t.throws(() => resolveSettings({ [name]: bad }, {}), { message: new RegExp(`^--${setting.flag} `) })
      if (bad === '') return
      t.throws(() => resolveSettings({}, { [variableOf(setting)]: bad }), { message: new RegExp(`^${variableOf(setting)} `) })
    })
  }
}

t.test('an unknown setting is refused', async (t) => {
  t.throws(() => resolveSettings({ prot: '1' }, {}), { code: 'invalid-setting', message: /prot/ })
})

t.test('a setting with choices takes no other', async (t) => {
  t.equal(resolveSettings({ logLevel: 'warn' }, {}).logLevel, 'warn')
  t.throws(() => resolveSettings({ logLevel: 'loud' }, {}), {
    code: 'invalid-setting',
    message: /--log-level must be one of trace, .*"loud"/,
  })
})
