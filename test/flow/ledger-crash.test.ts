/** What a client saw answered is in the ledger, also when the server is killed in the middle of it, and when its disk is full. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { readLedger } from '../support/ledger.ts'
import { startServer, temporaryFolder, type TestServer } from '../support/server.ts'

const CLIENTS = 16
/** How many answers there are before each kill. */
const ANSWERS = IS_WHOLE ? [1, 300, 20, 150, 3, 500, 80, 40, 250, 700] : [1, 20, 300]
const DISK_MB = 64

const place = temporaryFolder(t)
const NO_DISK = mounted(place) ? false : 'a disk that can be filled takes the right to mount one, as root has it'
unmount(place)

// Servers are started again and again, on a machine that may have much else to do.
t.setTimeout(300_000)

/** What clients see of a server. */
class Answers {
  /** Ids of the calls that were answered. */
  readonly ids: string[] = []
  #onAnswer = (): void => {}
  #onRefusal = (): void => {}

  answered(id: string): void {
    this.ids.push(id)
    this.#onAnswer()
  }

  refused(): void {
    this.#onRefusal()
  }

  /** Resolves when there are so many. */
  until(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onAnswer = () => {
        if (this.ids.length >= count) resolve()
      }
    })
  }

  untilOneMore(): Promise<void> {
    return this.until(this.ids.length + 1)
  }

  untilRefused(): Promise<void> {
    return new Promise((resolve) => (this.#onRefusal = resolve))
  }
}

t.test(`after ${ANSWERS.length} kills under load every answer has its record, and none is there twice`, async (t) => {
  await killUnderLoad(t, temporaryFolder(t), async () => {})
})

t.test('the same with a disk that is full at every other kill, and was before each other', { skip: NO_DISK }, async (t) => {
  const folder = temporaryFolder(t)
  t.ok(mounted(folder))
  t.teardown(() => unmount(folder))
  const filler = join(folder, 'filler')
  let kills = 0
  const afterKill = (): void => rmSync(filler, { force: true })
  const beforeKill = async (answers: Answers): Promise<void> => {
    for (const chunkBytes of [1024 * 1024, 4096]) fill(filler, Buffer.alloc(chunkBytes))
    await answers.untilRefused()
    if (kills++ % 2 === 0) return
    rmSync(filler)
    await answers.untilOneMore()
  }
  await killUnderLoad(t, folder, beforeKill, afterKill)
})

/** Whether a small disk of memory is at that place now. */
function mounted(folder: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'none', folder]).status === 0
}

function unmount(folder: string): void {
  spawnSync('umount', ['--lazy', folder])
}

/** Appends a chunk to a file again and again, until there is no room for one more. */
function fill(path: string, chunk: Buffer): void {
  try {
    for (;;) appendFileSync(path, chunk)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause
  }
}

/** @param beforeKill called under load, before each kill; `afterKill` once the server is gone */
async function killUnderLoad(
  t: Test,
  dataDir: string,
  beforeKill: (answers: Answers) => Promise<void>,
  afterKill = (): void => {},
): Promise<void> {
  const answers = new Answers()
  for (const count of ANSWERS) {
    const server = await startServer(t, [], dataDir)
    if (answers.ids.length === 0) await deployTo(server)
    const agent = new Agent({ keepAlive: true })
    const isEnough = answers.until(answers.ids.length + count)
    const client = async (path: string): Promise<void> => {
      for (;;) {
        const answer = await call(server.url + path, agent)
        if (answer === undefined) return
        if (answer.status === 200) answers.answered(answer.id)
        else answers.refused()
      }
    }
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index % 2 === 0 ? '/quick/' : '/waits/'))
    await isEnough
    await beforeKill(answers)
    await server.stop('SIGKILL')
    await Promise.all(clients)
    agent.destroy()
    afterKill()
  }
  // The last server's end was a kill as well: a new one has to find all of it.
  const server = await startServer(t, [], dataDir)
  t.equal((await server.get('/quick/')).status, 200)
  await server.recorded()
  const ids = readLedger(dataDir).map(({ id }) => String(id))
  const recorded = new Set(ids)
  t.equal(ids.length, recorded.size, `${ids.length} records, none twice`)
  t.strictSame(
    answers.ids.filter((id) => !recorded.has(id)),
    [],
    `each of ${answers.ids.length} answers has its record`,
  )
}

async function deployTo(server: TestServer): Promise<void> {
  await server.deploy('quick', 'export default { fetch: () => new Response("x") }')
  await server.deploy(
    'waits',
    'export default { async fetch() { await new Promise((r) => setTimeout(r, 5)); return new Response("x") } }',
  )
}

/** @returns what came of a call whose answer came whole; undefined if the server was gone */
function call(url: string, agent: Agent): Promise<{ readonly id: string; readonly status: number | undefined } | undefined> {
  return new Promise((resolve) => {
    request(url, { agent }, (response) => {
      response.once('error', () => resolve(undefined))
      response.resume()
      response.once('end', () => resolve({ id: String(response.headers['x-carpool-invocation']), status: response.statusCode }))
    })
      .once('error', () => resolve(undefined))
      .end()
  })
}
