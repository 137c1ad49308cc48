import { join } from 'node:path'
import { RATE_CARD_NAMES, rateCard, type Bill } from '@carpool/billing'
import t, { type Test } from 'tap'
import { startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'
import { BURNER, record, WAITER } from './support/usage-data.ts'

async function start(t: Test) {
  const plane = await startControlPlane(t)
  plane.usage = { function: [BURNER, WAITER], owner: [{ ...WAITER, key: 'ann' }] }
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  const json = async (...argv: string[]) => JSON.parse((await runCommand([...argv, '--json'], { env })).stdout) as unknown
  return { plane, env, json }
}

/** A line of a table, with any number of spaces between its cells. */
function row(...cells: readonly string[]): RegExp {
  return new RegExp(`^${cells.map((cell) => cell.replaceAll(/[.$()]/g, String.raw`\$&`)).join(' {2,}')}$`, 'm')
}

t.test('usage prints a line for each function, and a total', async (t) => {
  const { plane, env } = await start(t)
  const { exitCode, stdout, stderr } = await runCommand(['usage'], { env })
  t.match({ exitCode, stderr }, { exitCode: 0, stderr: '' })
  t.match(
    stdout,
    row(
      'FUNCTION',
      'CALLS',
      'FAILED',
      'REFUSED',
      'COLD',
      'CPU',
      'INIT CPU',
      'BACKGROUND',
      'WALL',
      'WAITING',
      'PEAK',
      'IN',
      'OUT',
      'EGRESS IN',
      'EGRESS OUT',
      'OPEN',
      'SOCKETS',
      'SOCKET TIME',
    ),
  )
  t.match(
    stdout,
    row(
      'burner',
      '1',
      '0',
      '0',
      '0',
      '100 ms',
      '0 ms',
      '0 ms',
      '100 ms',
      '0.0%',
      '5 MiB',
      '100 B',
      '1.5 KiB',
      '0 B',
      '0 B',
      '0 ms',
      '0',
      '0 ms',
    ),
  )
  t.match(
    stdout,
    row(
      'waiter',
      '10',
      '1',
      '3',
      '1',
      '10 ms',
      '10 ms',
      '5 ms',
      '20.1 s',
      '100.0%',
      '12.3 MiB',
      '100 B',
      '1.5 KiB',
      '3 MiB',
      '0 B',
      '1.5 s',
      '2',
      '1.02 min',
    ),
  )
  t.match(
    stdout,
    row(
      'total',
      '11',
      '1',
      '3',
      '1',
      '110 ms',
      '10 ms',
      '5 ms',
      '20.2 s',
      '99.5%',
      '12.3 MiB',
      '200 B',
      '3 KiB',
      '3 MiB',
      '0 B',
      '1.5 s',
      '2',
      '1.02 min',
    ),
  )
  t.strictSame(plane.usageQueries, ['?by=function'])
})

t.test('usage passes on what a line stands for, and since when', async (t) => {
  const { plane, env } = await start(t)
  const { stdout } = await runCommand(['usage', '--by', 'owner', '--since', '2026-01-01T00:00:00Z'], { env })
  t.match(stdout, /^OWNER .*\nann /)
  t.strictSame(plane.usageQueries, [`?by=owner&since=${Date.UTC(2026, 0, 1)}`])
})

t.test('usage --json prints whole numbers of the units in their names, and the total', async (t) => {
  const { json } = await start(t)
  t.match(await json('usage'), { rows: [BURNER, WAITER], total: { invocations: 11, cpuUs: 110_000, memoryPeakKb: 12_595 } })
  t.match(await json('usage', '--by', 'hour'), { rows: [], total: { invocations: 0 } })
})

t.test('usage and invocations say so if there is nothing, and not on stdout', async (t) => {
  const { env } = await start(t)
  for (const argv of [['usage', '--by', 'hour'], ['invocations']])
    t.match(await runCommand(argv, { env }), { exitCode: 0, stdout: '', stderr: /^(Nothing was used|There are no such)/ })
})

t.test('invocations prints one line each, and no measures of what never ran', async (t) => {
  const { plane, env, json } = await start(t)
  const refused = record({
    outcome: 'refused',
    error: 'saturated',
    status: 503,
    host: 0,
    start: 'warm',
    wallUs: 300,
    queueUs: 300,
  })
  plane.records = [record(), refused]
  const { exitCode, stdout } = await runCommand(['invocations'], { env })
  t.equal(exitCode, 0)
  const [heading = '', ...lines] = stdout.trimEnd().split('\n')
  t.match(heading, row('TIME', 'ID', 'FUNCTION', 'OUTCOME', 'START', 'STATUS', 'WALL', 'CPU', 'QUEUE', 'INIT', 'PEAK'))
  const common = ['2026-01-01T00:00:00.000Z', record().id, 'waiter'] as const
  t.match(lines[0], row(...common, 'ok', 'isolate-cold', '200', '2.04 s', '1.04 ms', '0.812 ms', '40 ms', '12.3 MiB'))
  t.match(lines[1], row(...common, 'refused: saturated', '-', '503', '0.3 ms', '-', '0.3 ms', '-', '-'))
  t.strictSame(await json('invocations'), plane.records)
  t.strictSame(plane.usageQueries, ['?limit=20', '?limit=20'])
})

t.test('invocations passes on what is asked for', async (t) => {
  const { plane, env } = await start(t)
  await runCommand(['invocations', 'waiter', '--slow', '--failed', '-n', '5', '--since', '1970-01-02'], { env })
  t.strictSame(plane.usageQueries, ['?function=waiter&since=86400000&failed=true&slow=true&limit=5'])
  const { exitCode, stderr } = await runCommand(['invocations', 'Bad/Name'], { env })
  t.equal(exitCode, 1)
  t.match(stderr, 'is no function name')
})

t.test('bill prints all cards side by side, and what was used', async (t) => {
  const { plane, env } = await start(t)
  const { exitCode, stdout } = await runCommand(['bill', '--since', '1970-01-02'], { env })
  t.equal(exitCode, 0)
  t.match(stdout, row('CARD', 'TOTAL', 'OF IT WAITING', 'SHARE'))
  // 21 GB-seconds of waiting and 0.0125 of computing; eleven requests.
  t.match(stdout, row('lambda-2018', '$0.000352', '$0.00035', '99.3%'))
  // 10 + 5 + 100 ms of CPU; eleven requests.
  t.match(stdout, row('workers', '$0.0000056', '$0.00', '0.0%'))
  t.strictSame(
    stdout
      .split('\n')
      .slice(1, 6)
      .map((line) => line.split(' ')[0]),
    [...RATE_CARD_NAMES],
  )
  t.match(stdout, /\n\n11 calls used 125 ms of CPU and waited for 20 s\.\n$/)
  t.strictSame(plane.usageQueries, ['?by=function&since=86400000'])
})

t.test('bill --by adds what each row costs under each card', async (t) => {
  const { plane, env, json } = await start(t)
  const { stdout } = await runCommand(['bill', '--by', 'owner'], { env })
  t.match(stdout, row('OWNER', ...RATE_CARD_NAMES))
  t.match(stdout, /^ann +\$0\.000352 +\$/m)
  t.strictSame(plane.usageQueries, ['?by=function', '?by=owner'])
  t.match(await json('bill', '--by', 'function'), {
    bills: RATE_CARD_NAMES.map((card) => ({ card, currency: 'USD' })),
    rows: [{ key: 'burner' }, { key: 'waiter' }],
    usage: { invocations: 11 },
  })
})

t.test('bill --card prints the lines of the card, what each function costs, and where the prices are from', async (t) => {
  const { env, json } = await start(t)
  const { exitCode, stdout } = await runCommand(['bill', '--card', 'lambda-2018'], { env })
  t.equal(exitCode, 0)
  t.match(stdout, row('LINE', 'QUANTITY', 'UNIT', 'PRICE', 'AMOUNT', 'WAITING'))
  t.match(stdout, row('duration', '21.01', 'GB-second', '$0.0000166667', '$0.00035', '$0.00035'))
  t.match(stdout, row('requests', '0.000011', 'million requests', '$0.20', '$0.0000022', '$0.00'))
  t.match(stdout, row('total', '$0.000352', '$0.00035'))
  t.match(stdout, row('FUNCTION', 'TOTAL', 'OF IT WAITING', 'SHARE'))
  t.match(stdout, row('burner', '$0.000000408', '$0.00', '0.0%'))
  t.match(stdout, row('waiter', '$0.000352', '$0.00035', '99.4%'))
  t.match(stdout, /\nPrices as of 2020-12-01: https:\/\/aws\.amazon\.com\/.*\nLeft out: Free tier/)
  t.match(await json('bill', '--card', 'lambda-2018'), {
    card: rateCard('lambda-2018'),
    bill: { card: 'lambda-2018', lines: [{ name: 'duration' }, { name: 'requests' }] },
    rows: [{ key: 'burner' }, { key: 'waiter' }],
    usage: { invocations: 11 },
  })
})

t.test('the total is that of the functions, also in rows of other kinds: waiting does not mix their memory', async (t) => {
  const { plane, json } = await start(t)
  plane.usage = {
    ...plane.usage,
    owner: [
      { ...WAITER, key: 'ann' },
      { ...BURNER, key: 'bob' },
    ],
  }
  const total = async (by: string) => ((await json('bill', '--card', 'cloud-run', '--by', by)) as { bill: Bill }).bill
  t.strictSame(await total('owner'), await total('function'))
})

t.test('a price that was not read in its source is reported', async (t) => {
  const { env } = await start(t)
  t.match(
    (await runCommand(['bill', '--card', 'cloud-run'], { env })).stdout,
    /\nNot read in their source itself: the prices of memory, requests\.\n/,
  )
  t.notMatch((await runCommand(['bill', '--card', 'workers'], { env })).stdout, 'Not read in')
})

t.test('a card of a user is read from a file; what is wrong in it is reported before the server is asked', async (t) => {
  const { plane, env } = await start(t)
  const card = { ...rateCard('workers'), name: 'ours' }
  const folder = t.testdir({ 'ours.json': JSON.stringify(card), 'wrong.json': JSON.stringify({ ...card, prices: [] }) })
  t.match((await runCommand(['bill', '--card', join(folder, 'ours.json')], { env })).stdout, row('total', '$0.0000056', '$0.00'))
  plane.usageQueries.length = 0
  for (const [file, message] of [
    ['wrong.json', /wrong\.json: prices must be a list of 1 to 100 prices/],
    ['none.json', /none\.json cannot be read: there is no such file/],
  ] as const) {
    const { exitCode, stdout, stderr } = await runCommand(['bill', '--card', join(folder, file)], { env })
    t.match({ exitCode, stdout }, { exitCode: 1, stdout: '' })
    t.match(stderr, message)
  }
  t.strictSame(plane.usageQueries, [])
})

t.test('a bill of nothing is nothing', async (t) => {
  const { plane, env } = await start(t)
  plane.usage = {}
  t.match((await runCommand(['bill'], { env })).stdout, row('lambda', '$0.00', '$0.00', '-'))
  t.match((await runCommand(['bill', '--card', 'lambda'], { env })).stdout, /\n0 calls used 0 ms of CPU and waited for 0 ms\.\n/)
})
