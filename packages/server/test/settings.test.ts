import t from 'tap'
import { flagOf, resolveSettings, SETTING_TOPICS, SETTINGS, settingsInForce, variableOf } from '../src/settings/index.ts'

const CORES = 4

function file(values: Record<string, unknown>) {
  return { file: { path: 'server.json', values }, cores: CORES }
}

t.test('a flag wins over the environment, which wins over the file, which wins over the default', async (t) => {
  t.equal(resolveSettings({}, {}).port, 8080)
  t.equal(resolveSettings({}, {}, file({ port: 12 })).port, 12)
  t.equal(resolveSettings({}, { CARPOOL_PORT: '1234' }, file({ port: 12 })).port, 1234)
  t.equal(resolveSettings({ port: '0' }, { CARPOOL_PORT: '1234' }, file({ port: 12 })).port, 0)
  t.equal(resolveSettings({}, { CARPOOL_PORT: '' }, file({ port: 12 })).port, 12, 'an empty variable is none')
  t.ok(Object.isFrozen(resolveSettings({}, {})))
})

t.test('lists come from all of them', async (t) => {
  t.strictSame(resolveSettings({}, { CARPOOL_ALLOW_EGRESS: '10.0.0.0/8, ::1/128' }).allowEgress, ['10.0.0.0/8', '::1/128'])
  t.strictSame(resolveSettings({ keepWarm: ['a', 'b'] }, {}).keepWarm, ['a', 'b'])
  t.strictSame(resolveSettings({}, {}, file({ keepWarm: ['c'] })).keepWarm, ['c'])
})

t.test('each setting tells where its value came from', async (t) => {
  const settings = settingsInForce({ port: '1' }, { CARPOOL_ADMIN_PORT: '2' }, file({ minHosts: 3 }))
  const find = (name: string) => settings.find((setting) => setting.name === name)
  t.match(find('port'), { value: 1, source: 'flag', origin: '--port', unit: 'port', range: '0 to 65535' })
  t.match(find('adminPort'), { value: 2, source: 'environment', origin: 'CARPOOL_ADMIN_PORT' })
  t.match(find('minHosts'), { value: 3, source: 'file', origin: 'minHosts in server.json', range: `1 to ${CORES}` })
  t.strictSame(find('maxHosts'), { name: 'maxHosts', value: CORES, source: 'default', unit: 'processes', range: `0 to ${CORES}` })
  t.strictSame(find('keepWarm'), { name: 'keepWarm', value: [], source: 'default', range: 'function names' })
  t.strictSame(
    settings.map(({ name }) => name),
    Object.keys(SETTINGS),
  )
})

t.test('every setting stands under one topic', async (t) => {
  const listed = SETTING_TOPICS.flatMap(({ settings }) => Object.keys(settings))
  t.strictSame(listed, Object.keys(SETTINGS))
  t.equal(new Set(listed).size, listed.length)
})

t.test('every default is one that may be given', async (t) => {
  const values = Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, setting.default]))
  t.strictSame(resolveSettings({}, {}, file(values)), resolveSettings({}, {}, { cores: CORES }))
})

for (const [name, setting] of Object.entries(SETTINGS)) {
  if (setting.type !== 'number') continue
  const max = setting.max === 'cores' ? CORES : setting.max
  const range = new RegExp(`whole number from ${setting.min} to ${max} \\(`)
  const isWrongBelow = setting.min > 0 && setting.orZero !== true
  const surroundings = { cores: CORES }

  t.test(`${name} is refused with its name and range unless it is a whole number in it`, async (t) => {
    const texts = ['', ' ', 'x', '-1', '+1', '1.5', '1e3', '0x10', '1_000', '1,5', 'NaN', 'Infinity', String(max + 1)]
    for (const text of isWrongBelow ? [...texts, '0', String(setting.min - 1)] : texts) {
      const flag = {
        code: 'invalid-setting',
        message: new RegExp(`^${flagOf(name)} .*${range.source}.*${JSON.stringify(text).replace(/[.+]/g, '\\$&')}`),
      }
      t.throws(() => resolveSettings({ [name]: text }, {}, surroundings), flag, JSON.stringify(text))
      if (text === '') continue
      const variable = { message: new RegExp(`^${variableOf(name)} .*${range.source}`) }
      t.throws(() => resolveSettings({}, { [variableOf(name)]: text }, surroundings), variable, JSON.stringify(text))
    }
    const values = [-1, 1.5, max + 1, 1e18, String(max), '', null, true, [max], {}, Number.NaN]
    for (const value of isWrongBelow ? [...values, 0] : values) {
      const message = new RegExp(`^${name} in server\\.json .*${range.source}`)
      t.throws(
        () => resolveSettings({}, {}, file({ [name]: value })),
        { code: 'invalid-setting', message },
        JSON.stringify(value),
      )
    }
  })
}

t.test('what depends on the cores names them', async (t) => {
  t.throws(() => resolveSettings({ maxHosts: '7' }, {}, { cores: 2 }), {
    message: '--max-hosts must be a whole number from 0 to 2 (the cores of this machine), not "7".',
  })
  t.equal(resolveSettings({}, {}, { cores: 2 }).maxHosts, 2)
  t.equal(resolveSettings({ maxHosts: '0' }, {}, { cores: 3.7 }).maxHosts, 3)
  t.equal(resolveSettings({}, {}, { cores: 0.5 }).maxHosts, 1)
})

t.test('a memory of 0 stands for a share, and is no memory of 1', async (t) => {
  t.equal(resolveSettings({ hostMemoryMb: '0' }, {}).hostMemoryMb, 0)
  t.equal(resolveSettings({ hostMemoryMb: '192' }, {}).hostMemoryMb, 192)
  t.throws(() => resolveSettings({ hostMemoryMb: '191' }, {}), {
    message: '--host-memory-mb must be 0 or a whole number from 192 to 1048576 (MiB), not "191".',
  })
})

t.test('settings that contradict each other are refused, by the name of one that was given', async (t) => {
  const surroundings = { cores: CORES }
  const cases: Array<[flags: Record<string, string>, message: string]> = [
    [{ minHosts: '3', maxHosts: '2' }, '--min-hosts must be at most --max-hosts (2), not 3.'],
    [{ hostLimitMin: '65' }, '--host-limit-min must be at most hostLimitInitial (64, its default), not 65.'],
    [{ hostLimitMax: '32' }, '--host-limit-max must be at least hostLimitInitial (64, its default), not 32.'],
    [{ hostLimitInitial: '9', hostLimitMax: '8' }, '--host-limit-initial must be at most --host-limit-max (8), not 9.'],
    [
      { panicWindowMs: '2000', saturationWindowMs: '1000' },
      '--panic-window-ms must be at most --saturation-window-ms (1000), not 2000.',
    ],
    [{ panicPercent: '70' }, '--panic-percent must be at least saturationPercent (80, its default), not 70.'],
  ]
  for (const [flags, message] of cases) {
    t.throws(() => resolveSettings(flags, {}, surroundings), { code: 'invalid-setting', message })
  }
  t.throws(() => resolveSettings({ minHosts: '3' }, { CARPOOL_MAX_HOSTS: '2' }, surroundings), {
    message: /CARPOOL_MAX_HOSTS \(2\)/,
  })
  t.throws(() => resolveSettings({ minHosts: '3' }, {}, file({ maxHosts: 2 })), { message: /maxHosts in server\.json \(2\)/ })
  t.equal(resolveSettings({ minHosts: '4' }, {}, surroundings).minHosts, 4)
  t.throws(() => resolveSettings({ minHosts: '5' }, {}, surroundings), { message: /from 1 to 4 \(the cores/ })
})

t.test('an unknown setting is refused', async (t) => {
  for (const name of ['prot', 'hosts', 'constructor', '__proto__']) {
    t.throws(() => resolveSettings(JSON.parse(`{"${name}":"1"}`), {}), { code: 'invalid-setting', message: new RegExp(name) })
  }
})

t.test('a variable that is nearly one of a setting is refused, and others are let be', async (t) => {
  for (const [name, meant] of [
    ['CARPOOL_MAXHOSTS', 'CARPOOL_MAX_HOSTS'],
    ['CARPOOL_PROT', 'CARPOOL_PORT'],
    ['CARPOOL_CONFG', 'CARPOOL_CONFIG'],
    ['CARPOOL_RETENTION', undefined],
    ['CARPOOL_HOME', undefined],
  ] as const) {
    const read = (): unknown => resolveSettings({}, { [name]: '1' })
    if (meant === undefined) t.doesNotThrow(read)
    else
      t.throws(read, {
        code: 'invalid-setting',
        message: `The environment has ${name}, which is no setting. Did you mean ${meant}?`,
      })
  }
  const others = ['CARPOOL_CONFIG', 'CARPOOL_URL', 'CARPOOL_TOKEN', 'CARPOOL_STATE_DIR', 'CARPOOL_SERVICE_HOST', 'OTHER_PORTT']
  const ofKubernetes = [
    'CARPOOL_SERVICE_PORT',
    'CARPOOL_PORT_8080_TCP',
    'CARPOOL_PORT_8080_TCP_PROTO',
    'CARPOOL_PORT_8080_TCP_ADDR',
  ]
  const env = Object.fromEntries([...others, ...ofKubernetes].map((name) => [name, 'x']))
  t.doesNotThrow(() => resolveSettings({}, env))
})

t.test('an empty address would be any, and an empty folder the working folder: neither is taken', async (t) => {
  for (const name of ['host', 'data']) {
    t.throws(() => resolveSettings({ [name]: '' }, {}), { code: 'invalid-setting', message: `--${name} must not be empty.` })
    t.throws(() => resolveSettings({}, {}, file({ [name]: ' ' })), { message: /must not be empty/ })
  }
  t.equal(resolveSettings({ secretKeyFile: '' }, {}).secretKeyFile, '')
})

t.test('an address range that is none is refused by where it was given', async (t) => {
  for (const name of ['allowEgress', 'denyEgress'] as const) {
    t.throws(() => resolveSettings({ [name]: ['10.0.0.0/99'] }, {}), {
      code: 'invalid-setting',
      message: new RegExp(`^${flagOf(name)}: "10.0.0.0/99" is no address range`),
    })
  }
  t.throws(() => resolveSettings({}, { CARPOOL_ALLOW_EGRESS: '::1,' }), {
    message: /^CARPOOL_ALLOW_EGRESS: "" is no address range/,
  })
})

t.test('a setting with choices takes no other, and a text no other type', async (t) => {
  t.equal(resolveSettings({ logLevel: 'warn' }, {}).logLevel, 'warn')
  t.throws(() => resolveSettings({ logLevel: 'loud' }, {}), {
    code: 'invalid-setting',
    message: /--log-level must be one of trace, .*"loud"/,
  })
  for (const value of [1, null, ['info']]) {
    t.throws(() => resolveSettings({}, {}, file({ logLevel: value })), { message: /^logLevel in server\.json must be a text/ })
  }
})

t.test('a list takes texts alone, and function names where they are meant', async (t) => {
  for (const value of ['a', [1], [['a']], {}, null]) {
    t.throws(() => resolveSettings({}, {}, file({ keepWarm: value })), {
      code: 'invalid-setting',
      message: /^keepWarm in server\.json must be a list of function names, not /,
    })
  }
  t.throws(() => resolveSettings({}, { CARPOOL_KEEP_WARM: 'ok,Not_OK' }), {
    code: 'invalid-setting',
    message: /^CARPOOL_KEEP_WARM: "Not_OK" is no function name/,
  })
})

t.test('what is shown of a value that is long is short', async (t) => {
  t.throws(() => resolveSettings({ port: '9'.repeat(10_000) }, {}), { message: /^.{1,200}$/ })
})
