import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { open } from './fixtures/open.ts'

const script = fileURLToPath(new URL('./fixtures/deploy-forever.ts', import.meta.url))

/** Lets a child deploy until it has printed `count` versions, kills it, and gives the last version that it printed. */
async function killWhileDeploying(folder: string, first: number, count: number): Promise<number> {
  const child = spawn(process.execPath, [script, folder, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  let last = first - 1
  for await (const line of createInterface(child.stdout)) {
    last = Number(line)
    if (last === first + count - 1) child.kill('SIGKILL')
  }
  await closed
  return last
}

t.test('a server that is killed while it deploys loses nothing that it has confirmed', async (t) => {
  const folder = t.testdir()
  let first = 0
  for (const count of [1, 2, 3, 5, 8, 11, 14, 20]) {
    const confirmed = await killWhileDeploying(folder, first, count)
    const problems: unknown[] = []
    const registry = open(folder, { onProblem: (problem) => problems.push(problem) })
    const live = registry.route('hello')
    const liveVersion = Number((await registry.code(live)).source.slice('version '.length))
    t.ok(liveVersion === confirmed || liveVersion === confirmed + 1, `version ${liveVersion} after ${confirmed} was confirmed`)
    t.same(problems, [])
    const history = registry.history('hello')
    t.ok(history.length <= 10)
    for (const revision of history) t.ok((await registry.sourceMap(revision)).length > 0)
    t.equal(
      readdirSync(join(folder, 'bundles')).length,
      2 * history.length,
      'each kept revision has its two files, and there are no others',
    )
    registry.close()
    first = liveVersion + 1
  }
})
