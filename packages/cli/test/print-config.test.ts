import { spawnSync } from 'node:child_process'
import { SETTINGS, type SettingInForce } from '@carpool/server'
import t, { type Test } from 'tap'
import { CARPOOL } from '../../../test/support/command.ts'

/** Runs `carpool serve` in a folder, in an environment of its own. */
function serve(folder: string, args: readonly string[], env: readonly string[] = []) {
  const argv = ['-i', `PATH=${process.env['PATH'] ?? ''}`, ...env, process.execPath, CARPOOL, 'serve', ...args]
  return spawnSync('env', argv, { cwd: folder, encoding: 'utf8' })
}

function folderWith(t: Test, config: object): string {
  return t.testdir({ 'carpool.server.json': JSON.stringify(config), 'other.json': '{"port": 9}' })
}

t.test('what would be in force is printed, with where it comes from, and nothing starts', async (t) => {
  const folder = folderWith(t, { adminPort: 7, keepWarm: ['a', 'b'] })
  const { status, stdout, stderr } = serve(folder, ['--print-config', '--port', '5'], ['CARPOOL_LOG_LEVEL=warn'])
  t.equal(status, 0)
  t.equal(stderr, '')
  t.match(stdout, /^SETTING +VALUE +UNIT +FROM +RANGE\n/)
  t.match(stdout, /\nport +5 +port +--port +0 to 65535\n/)
  t.match(stdout, /\nadminPort +7 +port +carpool\.server\.json +0 to 65535\n/)
  t.match(stdout, /\nkeepWarm +a, b +carpool\.server\.json +function names\n/)
  t.match(stdout, /\nlogLevel +warn +CARPOOL_LOG_LEVEL +trace, debug/)
  t.match(stdout, /\nmaxQueueMs +30000 +ms +default +1 to 900000\n/)
  t.equal(stdout.trim().split('\n').length, 1 + Object.keys(SETTINGS).length)
  t.strictSame(serve(folder, ['--print-config', '--port', '5', '--json']).status, 0)
})

t.test('the same as JSON', async (t) => {
  const folder = folderWith(t, {})
  const read = (...args: string[]) => {
    const { status, stdout } = serve(folder, ['--print-config', '--json', ...args])
    t.equal(status, 0)
    return JSON.parse(stdout) as { configFile: string | null; settings: SettingInForce[] }
  }
  const { configFile, settings } = read('--config', 'other.json')
  t.equal(configFile, 'other.json')
  t.match(
    settings.find(({ name }) => name === 'port'),
    { value: 9, source: 'file', unit: 'port', range: '0 to 65535' },
  )
  t.equal(read().configFile, 'carpool.server.json')
  t.equal(settings.length, Object.keys(SETTINGS).length)
})

t.test('a wrong setting ends the command before anything starts, wherever it was given', async (t) => {
  const folder = folderWith(t, { prt: 1 })
  const cases: Array<[args: string[], env: string[], message: RegExp]> = [
    [
      ['--max-hosts', '100000'],
      ['CARPOOL_CONFIG=other.json'],
      /^carpool: --max-hosts must be a whole number from 0 to \d+ \(the cores of this machine\), not "100000"\.\n$/,
    ],
    [[], [], /^carpool: carpool\.server\.json has the key "prt", which is no setting\. Did you mean port\?\n$/],
    [['--config', 'none.json'], [], /^carpool: The file none\.json \(--config\) cannot be read: there is no such file\.\n$/],
    [
      ['--config', 'other.json'],
      ['CARPOOL_MAX_QUEUED=1e3'],
      /^carpool: CARPOOL_MAX_QUEUED must be a whole number from 0 to 1000000 \(invocations\), not "1e3"\.\n$/,
    ],
  ]
  for (const [args, env, message] of cases) {
    for (const print of [[], ['--print-config']]) {
      const { status, stdout, stderr } = serve(folder, [...print, ...args], env)
      t.equal(status, 2)
      t.equal(stdout, '')
      t.match(stderr, message)
    }
  }
})

t.test('the schema of the file is one JSON document', async (t) => {
  const { status, stdout } = serve(t.testdir({}), ['--print-config-schema'])
  t.equal(status, 0)
  t.match(JSON.parse(stdout), {
    type: 'object',
    additionalProperties: false,
    properties: { port: { type: 'integer', maximum: 65_535 } },
  })
})
