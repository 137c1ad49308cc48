import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ask, idsIn, journalIn, open } from './fixtures/records.ts'

const script = fileURLToPath(new URL('./fixtures/write-forever.ts', import.meta.url))

/** Lets a child write until it has printed `count` ids, kills it, and gives all that it printed. */
async function killWhileWriting(folder: string, count: number): Promise<string[]> {
  const child = spawn('env', ['-i', process.execPath, script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const confirmed: string[] = []
  for await (const line of createInterface(child.stdout)) {
    // The last line may be cut short.
    if (line.length === 36) confirmed.push(line)
    if (confirmed.length === count) child.kill('SIGKILL')
  }
  await closed
  return confirmed
}

t.test('a process that is killed while it writes has every record that was confirmed, and none twice', async (t) => {
  const folder = t.testdir()
  const confirmed: string[] = []
  for (const count of [1, 7, 40, 100, 1_000, 5_000, 20_000]) {
    confirmed.push(...(await killWhileWriting(folder, count)))
    const { ledger, problems } = await open(folder)
    const rows = await ledger.usage({ by: 'function' })
    const ids = idsIn(folder)
    const known = new Set(ids)
    t.equal(known.size, ids.length, 'none is there twice')
    t.strictSame(
      confirmed.filter((id) => !known.has(id)),
      [],
      `each of ${confirmed.length} is there`,
    )
    t.equal(
      rows.reduce((sum, { invocations }) => sum + invocations, 0),
      ids.length,
      'the totals hold all of them',
    )
    t.ok(ledger.hasRun('r0'))
    await ledger.close()
    t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], ids.length)
    // It may have been killed in the middle of a write, of records that were not confirmed.
    t.strictSame(
      problems.filter(({ message }) => !/^ledger-journal-\d+ in the data folder is damaged/.test(message)),
      [],
    )
    t.strictSame(journalIn(folder), [], 'an end in order leaves no journal')
  }
})
