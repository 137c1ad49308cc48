/** Runs all cases in the full form, one after the other, and writes what was seen to docs/isolation.md. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/command.ts'
import { readRows, renderTable, ROWS_FOLDER } from './harness/table.ts'

const TABLE = join(ROOT, 'docs/isolation.md')

const folder = mkdtempSync(join(tmpdir(), 'carpool-isolation-'))
try {
  // tap takes no folder here: files that are no test of isolation would run as well.
  const { status } = spawnSync('tap', ['--jobs=1', '--timeout=1800', ...process.argv.slice(2), 'test/isolation/*.test.ts'], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, CARPOOL_ISOLATION: 'full', [ROWS_FOLDER]: folder },
  })
  const rows = readRows(folder)
  const run = rows.filter(({ verdict }) => verdict !== 'skipped')
  writeFileSync(
    TABLE,
    `# Isolation: what was tried, and what came of it

Written by \`npm run test:isolation\`, which runs ${run.length} attacks on real servers, each beside a neighbour: a function of somebody else in the same
host, with about 5 ms of CPU and one fetch a call, called 50 times a second. ${run.length} cases, ${rows.length - run.length} skipped, on Node.js ${process.version}, ${availableParallelism()} cores
(${cpus()[0]?.model ?? 'unknown'}). ${status === 0 ? 'All were as they should be.' : '**Some were not as they should be.**'}

- **verdict**: \`OK\` answered; \`R\` refused, and the call goes on; \`E\` the call fails, and its isolate lives; \`K\` the isolate is ended, and the host lives;
  \`P\` the host is given up and replaced.
- **billed**: \`full\` what was measured; \`cap\` the same up to the limit; \`heartbeat\` what was last seen; \`none\` nothing. **CPU billed** is the median.
- **time to kill**: from the start of its code to the end of the call, at most; limits of CPU are mostly 100 ms.
- **peak memory**: how much more the host took at its peak than before.
- **neighbour p99**: from when a call was due to the end of its answer. For \`P\` it includes calls that were begun again in another host.

${renderTable(rows)}
`,
  )
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
