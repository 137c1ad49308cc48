/** What a loaded function takes of its host's memory: many functions of one line, each with an isolate of its own. */
import { join } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { Caller, isOk } from '../lib/caller.ts'
import { type CarpoolServer, startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { readProc } from '../lib/process-table.ts'
import { progress, publish } from '../lib/report.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'

const AIM_KB = 1_700

const options = benchArguments('npm run bench:resident -- [options]', {
  functions: { help: 'how many functions are loaded at the same time', default: '100' },
  calls: { help: 'how often each is called then', default: '300' },
})
const functionCount = options.whole('functions', 1)
const calls = options.whole('calls', 1)
const environment = readEnvironment()

/** What the host that takes calls has written to, in KB: what it shares with others is not its own. */
async function hostKb(server: CarpoolServer): Promise<number> {
  const host = (await server.hosts()).find(({ state }) => state !== 'standby')
  const rollup = host === undefined ? undefined : readProc(host.pid, 'smaps_rollup')
  const found = /^Private_Dirty:\s+(\d+) kB$/m.exec(rollup ?? '')
  if (found === null) throw new Error('The memory of the host cannot be read: this needs Linux and a host process.')
  return Number(found[1])
}

interface Row {
  readonly title: string
  readonly kbEach: number
}

const rows: Row[] = []
{
  await using folder = await temporaryFolder()
  const flags = ['--max-isolates', String(functionCount + 1)]
  await using server = await startCarpool({ dataDir: join(folder.path, 'data'), flags })
  using caller = new Caller()
  const call = async (url: string): Promise<void> => {
    const result = await caller.call(url)
    if (!isOk(result)) throw new Error(`A call was answered ${result.status}: ${result.body}`)
  }
  // The first one brings what all share: the host's own code, and blank isolates.
  const first = await server.deployCode(code('first'), 'first')
  for (let index = 0; index < calls; index++) await call(first.url)
  const beforeKb = await hostKb(server)
  progress(`loading ${functionCount} functions`)
  const urls: string[] = []
  for (let index = 0; index < functionCount; index++) {
    const name = `hello-${index}`
    const { url } = await server.deployCode(code(name), name)
    await call(url)
    urls.push(url)
  }
  rows.push({ title: 'called once', kbEach: ((await hostKb(server)) - beforeKb) / functionCount })
  progress(`calling each ${calls} times`)
  for (const url of urls) for (let index = 0; index < calls; index++) await call(url)
  rows.push({ title: `called ${calls} times more`, kbEach: ((await hostKb(server)) - beforeKb) / functionCount })
}

/** Each has code of its own. What is deployed is a bundle: a script that gives a factory. */
function code(name: string): string {
  return `(() => ({ default: { fetch: () => new Response('${name}') } }))`
}

const kilobytes = (value: number): string => `${Math.round(value)} KB`
const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'a function of one line', text: ({ title }) => title },
  { title: 'memory of its host', text: ({ kbEach }) => kilobytes(kbEach) },
]

publish(
  {
    bench: 'resident',
    title: `Memory of a loaded function, of ${functionCount} in one host`,
    environment,
    blocks: [renderTable(COLUMNS, rows, options.markdown ? 'markdown' : 'plain')],
    verdicts: [atMost('aim', 'memory of a function that was called once', rows[0]?.kbEach ?? Number.NaN, AIM_KB, kilobytes)],
    results: { functionCount, calls, rows },
  },
  options,
)
