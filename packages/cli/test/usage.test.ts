import t from 'tap'
import { runCommand } from './support/run-command.ts'

t.test('help names every command on stdout and exits with 0', async (t) => {
  for (const argv of [['--help'], ['-h'], ['help']]) {
    const { exitCode, stdout, stderr } = await runCommand(argv)
    t.equal(exitCode, 0)
    t.equal(stderr, '')
    for (const command of [
      'serve',
      'dev',
      'doctor',
      'status',
      'deploy',
      'list',
      'invoke',
      'logs',
      'invocations',
      'usage',
      'bill',
      'delete',
      'enable',
      'disable',
      'secret',
      'token',
      'audit',
    ])
      t.match(stdout, `\n  ${command} `)
  }
})

t.test('commands of two words have help of their own', async (t) => {
  for (const argv of [
    ['token', '--help'],
    ['help', 'token'],
  ]) {
    const { exitCode, stdout } = await runCommand(argv)
    t.equal(exitCode, 0)
    for (const command of ['create', 'list', 'revoke']) t.match(stdout, `\n  ${command} `)
  }
  for (const argv of [
    ['token', 'create', '--help'],
    ['help', 'token', 'create'],
  ]) {
    const { stdout } = await runCommand(argv)
    t.match(stdout, 'Usage: carpool token create [options]')
    for (const option of ['--owner', '--scope', '--days', '--json', '--token']) t.match(stdout, option)
  }
  t.match(await runCommand(['secret']), { exitCode: 2, stdout: '', stderr: /Usage: carpool secret/ })
})

t.test('without a command help goes to stderr, as a usage error', async (t) => {
  const { exitCode, stdout, stderr } = await runCommand([])
  t.equal(exitCode, 2)
  t.equal(stdout, '')
  t.match(stderr, 'Usage: carpool')
})

t.test('the help of a command shows its options, --json among them', async (t) => {
  for (const argv of [
    ['invoke', '--help'],
    ['help', 'invoke'],
  ]) {
    const { exitCode, stdout } = await runCommand(argv)
    t.equal(exitCode, 0)
    t.match(stdout, 'Usage: carpool invoke [options] <name>')
    for (const option of ['--data', '--method', '--path', '--header', '--url', '--token', '--json']) t.match(stdout, option)
  }
  t.match((await runCommand(['logs', '--help'])).stdout, /one JSON\s+document\s+per\s+line/)
})

t.test('the version is printed', async (t) => {
  t.match(await runCommand(['--version']), { exitCode: 0, stdout: /^\d+\.\d+\.\d+\n$/ })
})

t.test('a wrong command line is a usage error with one line that says what is wrong', async (t) => {
  const cases: [argv: string[], message: RegExp][] = [
    [['lst'], /unknown command 'lst'.*Did you mean list\?/],
    [['list', '--jsn'], /unknown option '--jsn'.*Did you mean --json\?/],
    [['list', 'extra'], /too many arguments/],
    [['invoke'], /missing required argument 'name'/],
    [['invoke', 'f', '--header', 'no colon'], /"name: value"/],
    [['invoke', 'f', '--header', 'x: a\r\ny: b'], /"name: value"/],
    [['invoke', 'f', '-d'], /argument missing/],
    [['invoke', 'f', '-d', '@nothing-here', '--url', 'http://127.0.0.1:9'], /data file "nothing-here" cannot be read/],
    [['logs', '-n', 'many'], /whole number from 0 to/],
    [['usage', '--by', 'day'], /Allowed choices are function, owner, hour/],
    [['usage', '--since', 'yesterday'], /such as 90m, 24h or 7d, or an ISO 8601 time such as/],
    [['usage', 'hello'], /too many arguments/],
    [['invocations', '--limit', '0'], /whole number from 1 to 1000/],
    [['invocations', '--since', '2026-02-31'], /ISO 8601 time/],
    [['bill', '--card', 'azure'], /one of lambda-2018, lambda, cloud-run, active-cpu, workers, or the path of a \.json file/],
    [['status', 'x'], /too many arguments/],
    [['token', 'make'], /unknown command 'make'/],
    [['token', 'create', '--owner', 'a'], /required option '--scope <scopes>' not specified/],
    [['token', 'create', '--scope', 'read'], /required option '--owner <owner>' not specified/],
    [['token', 'create', '--owner', 'a', '--scope', 'read,fly'], /one or more of deploy, invoke, read, admin/],
    [['token', 'create', '--owner', 'a', '--scope', ''], /one or more of deploy/],
    [['token', 'create', '--owner', 'a', '--scope', 'read', '--days', '0'], /whole number from 1 to 3650/],
    [['token', 'revoke', '..', '--url', 'http://127.0.0.1:9'], /"\.\." is no id of a token/],
    [['secret', 'set', 'f'], /missing required argument 'key'/],
    [['secret', 'set', 'f', 'A', '--url', 'http://127.0.0.1:9'], /a value for A is needed/],
    [['secret', 'delete', 'f', '..', '--url', 'http://127.0.0.1:9'], /"\.\." is no key of a secret/],
    [['audit', '-n', '1001'], /whole number from 0 to 1000/],
    [['enable'], /missing required argument 'name'/],
    [['serve', '--hosts', '2'], /unknown option '--hosts'/],
    [['deploy', 'x', '--env', 'NOVALUE'], /KEY=value/],
    [['deploy', 'x', '--env', '1A=1'], /KEY=value/],
    [['deploy', 'x', '--memory-mb', '1'], /whole number from 8 to 4096/],
    [['deploy', 'x', '--timeout-ms', '1e9'], /whole number from 10 to 900000/],
    [['list', '--url', 'ftp://example.com'], /--url must be an http or https URL/],
  ]
  for (const [argv, message] of cases) {
    const { exitCode, stdout, stderr } = await runCommand(argv)
    t.equal(exitCode, 2, argv.join(' '))
    t.match(stderr, /^carpool: .*\n$/, 'one line')
    t.match(stderr, message)
    t.equal(stdout, '')
  }
})

t.test('with --json a wrong command line is also one problem document on stdout', async (t) => {
  for (const argv of [
    ['list', '--json', '--nonsense'],
    ['nonsense', '--json'],
  ]) {
    const { exitCode, stdout, stderr } = await runCommand(argv)
    t.equal(exitCode, 2)
    t.match(JSON.parse(stdout), {
      error: { type: 'urn:carpool:error:usage', code: 'usage', status: 400, title: String, detail: /unknown/ },
    })
    t.match(stderr, /^carpool: unknown/)
  }
})
