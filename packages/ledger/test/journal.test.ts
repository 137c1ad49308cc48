import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import type { BackgroundUsage } from '@carpool/core'
import { runs } from '../../../test/support/form.ts'
import { openForWriting } from '../src/database.ts'
import { Importer } from '../src/importer.ts'
import { JournalBlock, type Entry } from '../src/journal-block.ts'
import {
  BLOCK_HEAD_BYTES,
  header,
  journalBytes,
  nameAt,
  RECORD_BYTES,
  sealBlock,
  SLOT,
  stretchesOf,
} from '../src/journal-format.ts'
import { readUsage } from '../src/queries.ts'
import { background, GROUPS, totalsOf, written, type Written } from './fixtures/oracle.ts'
import { ask, fileOf, idsIn, journalIn, open, record, save } from './fixtures/records.ts'

interface Turn {
  readonly entries: readonly Entry[]
  /** Where its block ends in the file. */
  readonly end: number
}

/** What is written for entries that come in turns, with the sequences from 1 on. */
function journalOf(turns: ReadonlyArray<readonly Entry[]>, firstSequence = 1): { content: Buffer; turns: Turn[] } {
  const block = new JournalBlock()
  const parts: Uint8Array[] = [header()]
  const done: Turn[] = []
  let sequence = firstSequence
  let end = 8
  for (const entries of turns) {
    block.clear()
    for (const entry of entries) if (block.put(entry, 0, sequence++) !== 'put') throw new Error('The block is full.')
    block.seal()
    parts.push(Buffer.from(block.bytes.subarray(0, block.byteLength)))
    end += block.byteLength
    done.push({ entries, end })
  }
  return { content: Buffer.concat(parts), turns: done }
}

interface Imported {
  readonly ids: readonly string[]
  readonly problems: readonly string[]
  readonly files: readonly string[]
}

/** Brings a folder with these files of a journal into a new database, and again. */
function importOf(folder: string, files: Readonly<Record<string, Uint8Array>>): Imported {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  const { database } = openForWriting(fileOf(folder))
  const problems: string[] = []
  const importer = new Importer(database, { folder, afterSequence: 0, onProblem: (problem) => problems.push(problem) })
  importer.bringIn()
  database.close()
  return { ids: idsIn(folder), problems, files: journalIn(folder) }
}

const TURNS = [
  [record(), record({ revision: 'b', functionName: 'other' })],
  [record({ outcome: 'timeout' })],
  [record(), record(), record({ revision: 'b', functionName: 'other' })],
]
const idsOf = (turns: ReadonlyArray<{ readonly entries: readonly Entry[] }>): string[] =>
  turns.flatMap(({ entries }) => entries).map((entry) => ('id' in entry ? entry.id : ''))

/** The blocks that are found in some content. */
function blocksIn(content: Uint8Array): { from: number; to: number }[] {
  const view = journalBytes(content.length)
  view.bytes.set(content)
  const stretches = [...stretchesOf(view, 8, content.length)]
  let at = 8
  for (const { from, to } of stretches) {
    if (from !== at || to <= from) throw new Error('The stretches are not all of it.')
    at = to
  }
  if (at !== content.length) throw new Error('The stretches are not all of it.')
  return stretches.filter(({ isBlock }) => isBlock).map(({ from, to }) => ({ from, to }))
}

t.test('wherever a journal is cut, its whole blocks are found, and the rest is told apart', async (t) => {
  const { content, turns } = journalOf(TURNS)
  for (let length = 8; length <= content.length; length += 1) {
    const whole = turns.filter(({ end }) => end <= length)
    t.strictSame(
      blocksIn(content.subarray(0, length)).map(({ to }) => to),
      whole.map(({ end }) => end),
    )
  }
})

t.test('whatever byte of a journal is changed, the blocks that do not have it are found, and no others', async () => {
  const { content, turns } = journalOf(TURNS)
  fc.assert(
    fc.property(fc.nat({ max: content.length - 9 }), fc.integer({ min: 1, max: 255 }), (place, change) => {
      const changed = Buffer.from(content)
      changed[place + 8] = (changed[place + 8] ?? 0) ^ change
      const ends = turns
        .filter(({ end }, index) => place + 8 >= end || place + 8 < (turns[index - 1]?.end ?? 8))
        .map(({ end }) => end)
      return JSON.stringify(blocksIn(changed).map(({ to }) => to)) === JSON.stringify(ends)
    }),
    { numRuns: 2_000 },
  )
})

t.test('what is whole of a journal that was cut off is brought in, what is not is named, and the file is kept', async (t) => {
  const { content, turns } = journalOf(TURNS)
  for (const length of [0, 3, 8, 9, 100, ...turns.flatMap(({ end }) => [end - 1, end, end + 1]), content.length - 8]) {
    if (length > content.length) continue
    const folder = t.testdir()
    const whole = turns.filter(({ end }) => end <= length)
    const rest = length - (length < 8 ? 0 : (whole.at(-1)?.end ?? 8))
    const { ids, problems, files } = importOf(folder, { 'ledger-journal-7': content.subarray(0, length) })
    t.strictSame(ids, idsOf(whole), `cut at ${length}`)
    t.strictSame(files, [])
    const name = 'ledger-journal-7'
    const damage = `${name} in the data folder is damaged: ${rest} bytes of it cannot be read, the first of them byte ${length - rest}. What is whole is brought into the ledger, and the file is kept, as ${name}.damaged.`
    t.strictSame(problems, rest === 0 ? [] : [damage])
    if (rest > 0) t.equal(readFileSync(join(folder, `${name}.damaged`)).length, length)
  }
})

t.test('of a journal with a changed byte all other records are brought in, and how many are missing is told', async (t) => {
  const { content, turns } = journalOf(TURNS)
  const inSecond = (turns[0]?.end ?? 0) + 50
  const changed = Buffer.from(content)
  changed[inSecond] = (changed[inSecond] ?? 0) ^ 1
  const { ids, problems } = importOf(t.testdir(), { 'ledger-journal-1': changed })
  t.strictSame(ids, idsOf([turns[0], turns[2]].filter((turn) => turn !== undefined)))
  t.match(problems, [
    /damaged: \d+ bytes/,
    'Missing in the journal of the ledger: 1 records, of those with the sequences 3 to 3.',
  ])
})

t.test('records whose names are lost are not given to anybody', async (t) => {
  const { content, turns } = journalOf(TURNS)
  const changed = Buffer.from(content)
  changed[60] = (changed[60] ?? 0) ^ 1
  const { ids, problems } = importOf(t.testdir(), { 'ledger-journal-1': changed })
  // The first block has the names of all records but those of the second.
  t.strictSame(ids, [])
  t.match(problems, [/damaged: \d+ bytes/])
  t.equal(Number(/(\d+) bytes of it/.exec(problems[0] ?? '')?.[1]) > (turns[0]?.end ?? 0) - 8, true)
})

t.test('a header that is damaged loses no record, and noise in place of a journal is no record', async (t) => {
  const { content, turns } = journalOf(TURNS)
  const changed = Buffer.from(content)
  changed[1] = 0
  t.strictSame(importOf(t.testdir(), { 'ledger-journal-1': changed }).ids, idsOf(turns))
  const noise = randomBytes(200_000)
  const { ids, problems } = importOf(t.testdir(), { 'ledger-journal-1': noise, 'ledger-journal-2': Buffer.alloc(100_000) })
  t.strictSame(ids, [])
  t.match(problems, [/^ledger-journal-1 .* 200000 bytes/, /^ledger-journal-2 .* 100000 bytes/])
})

t.test('records of several files come in by their order, and those that are in the database already are left out', async (t) => {
  const folder = t.testdir()
  const first = journalOf(TURNS)
  const second = journalOf([[record(), record()]], 7)
  const files = { 'ledger-journal-9': first.content, 'ledger-journal-10': second.content }
  const ids = [...idsOf(first.turns), ...idsOf(second.turns)]
  t.strictSame(importOf(folder, files).ids, ids)
  // As after the end of a process between its commit and the deletion.
  const again = importOf(folder, files)
  t.strictSame(again, { ids, problems: [], files: [] })
  t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 8)
})

t.test('the words and revisions of a journal are read by its own names, also of a build with others', async (t) => {
  const folder = t.testdir()
  const { content } = journalOf([[record({ outcome: 'timeout' })]])
  const at = content.indexOf('"timeout"')
  const block = Buffer.from(content)
  block.write('"mel\'ted"', at)
  t.ok(at > 0)
  // The checksum of what another build would have written.
  const { crc32 } = await import('node:zlib')
  block.writeUInt32LE(crc32(block.subarray(16)), 12)
  t.strictSame(importOf(folder, { 'ledger-journal-1': block }).problems, [])
  t.match(ask(folder, 'SELECT outcome FROM invocations'), [{ outcome: "mel'ted" }])
})

/** The same as the version before streams and sockets wrote it: without their figures, which stand before the id. */
function asVersion1(content: Buffer): Buffer {
  const view = journalBytes(content.length)
  view.bytes.set(content)
  const parts: Buffer[] = [Buffer.from(content.subarray(0, 8))]
  parts[0]!.writeUInt32LE(1, 4)
  for (const { from, to } of stretchesOf(view, 8, content.length)) {
    const items: Buffer[] = [Buffer.alloc(BLOCK_HEAD_BYTES)]
    for (let at = from + BLOCK_HEAD_BYTES; at < to; ) {
      const name = nameAt(view, at, to)
      const itemEnd = at + (name?.itemBytes ?? RECORD_BYTES)
      if (name !== undefined) items.push(content.subarray(at, itemEnd))
      else items.push(content.subarray(at, at + SLOT.openUs * 8), content.subarray(at + SLOT.id * 8, itemEnd))
      at = itemEnd
    }
    const block = Buffer.concat(items)
    const sealed = journalBytes(block.length)
    sealed.bytes.set(block)
    sealBlock(sealed, block.length)
    parts.push(Buffer.from(sealed.bytes))
  }
  return Buffer.concat(parts)
}

t.test('a journal of version 1 is brought in, and nothing is known of streams and sockets', async (t) => {
  const folder = t.testdir()
  const older = record({ bytesOut: 5, egressBytesOut: 6, openUs: 7, sockets: 8, socketUs: 9 })
  const inBackground = fc.sample(background, 1)[0]!
  const first = journalOf([[older, record()], [inBackground]])
  const second = journalOf([[record({ openUs: 7 })]], 4)
  const imported = importOf(folder, { 'ledger-journal-1': asVersion1(first.content), 'ledger-journal-2': second.content })
  t.strictSame(imported.problems, [])
  t.strictSame(imported.ids, [...idsOf(first.turns.slice(0, 1)), ...idsOf(second.turns)])
  t.match(ask(folder, 'SELECT * FROM invocation_records ORDER BY sequence'), [
    { id: older.id, bytes_out: 5, egress_bytes_out: 6, open_us: 0, sockets: 0, socket_us: 0 },
    { open_us: 0 },
    { open_us: 7 },
  ])
  t.match(ask(folder, 'SELECT cpu_us, sockets, socket_us FROM background'), [
    { cpu_us: inBackground.cpuUs, sockets: 0, socket_us: 0 },
  ])
})

t.test('a journal of another version is refused, with both versions, and stays as it is', async (t) => {
  const folder = t.testdir()
  const { content, turns } = journalOf(TURNS)
  const newer = Buffer.from(content)
  newer.writeUInt32LE(3, 4)
  writeFileSync(join(folder, 'ledger-journal-1'), newer)
  for (let i = 0; i < 2; i += 1) {
    await t.rejects(open(folder), {
      code: 'data-unusable',
      message: /^ledger-journal-1 in the data folder has version 3 of the journal, and this Carpool reads none after version 2\./,
    })
  }
  t.strictSame(readFileSync(join(folder, 'ledger-journal-1')), newer)
  writeFileSync(join(folder, 'ledger-journal-1'), content)
  const { ledger } = await open(folder)
  t.equal((await ledger.invocations({ limit: 99 })).length, idsOf(turns).length)
  await ledger.close()
})

t.test('what a killed process left damaged is told when the ledger is opened, and all goes on', async (t) => {
  const folder = t.testdir()
  const { content, turns } = journalOf(TURNS)
  writeFileSync(join(folder, 'ledger-journal-3'), Buffer.concat([content, randomBytes(40)]))
  const { ledger, problems } = await open(folder)
  t.match(problems, [{ message: /^ledger-journal-3 in the data folder is damaged: 40 bytes/ }])
  t.ok(ledger.hasRun('b'))
  const next = record()
  await save(ledger, next, 0)
  t.strictSame(await ledger.invocations({ limit: 1 }), [next])
  t.match(await ledger.usage({ by: 'owner' }), [{ invocations: idsOf(turns).length + 1 }])
  await ledger.close()
  t.strictSame(journalIn(folder), [])
})

t.test('whatever is written is in the totals as it is in the records', async (t) => {
  const turn = fc.array(fc.oneof(written, background), { minLength: 1, maxLength: 40 })
  let folders = 0
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 8 }), (turns) => {
      const folder = t.testdir({ [`run-${(folders += 1)}`]: {} }) + `/run-${folders}`
      const entries = turns.map((each) => each.map((one) => ('record' in one ? one.record : one)))
      importOf(folder, { 'ledger-journal-1': journalOf(entries).content })
      const database = new DatabaseSync(fileOf(folder), { readOnly: true })
      const records = turns.flat().filter((one): one is Written => 'record' in one)
      const usages = turns.flat().filter((one): one is BackgroundUsage => !('record' in one))
      for (const by of ['function', 'owner', 'hour'] as const) {
        const expected = totalsOf(
          GROUPS[by],
          records.map(({ record }) => ({ record, instanceUs: 0 })),
          usages,
        )
        t.strictSame(readUsage(database, { by }), expected)
      }
      database.close()
      t.strictSame(
        idsIn(folder),
        records.map(({ record }) => record.id),
      )
    }),
    { numRuns: runs(60) },
  )
})

t.test('a large journal goes on in another file, and files go when they are in the database', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const COUNT = 120_000
  for (let done = 0; done < COUNT; done += 20_000) {
    await Promise.all(Array.from({ length: 20_000 }, (_, index) => save(ledger, record({ revision: `r${index % 3}` }), 0)))
  }
  t.strictSame(journalIn(folder), ['ledger-journal-1', 'ledger-journal-2'])
  t.equal(ledger.unavailable, undefined)
  shell.exec('ROLLBACK')
  shell.close()
  t.match(await ledger.usage({ by: 'function' }), [{ invocations: COUNT }])
  t.strictSame(journalIn(folder), ['ledger-journal-2'])
  await ledger.close()
  t.strictSame(journalIn(folder), [])
  t.ok(problems.every(({ message }) => /locked|is written again/.test(message)))
})
