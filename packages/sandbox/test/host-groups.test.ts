/** On the control groups of this machine, where it lets us make some. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { prepareHostGroups } from '../src/cgroup/host-groups.ts'

const LIMITS = { memoryBytes: 64 * 1024 * 1024, tasks: 16 }

const groups = prepareHostGroups(LIMITS)
const skip = groups.controllers.size < 2 && [...groups.missing.values()].join(' ')

/** The folder in which groups are made, for each controller. */
function parents(): readonly string[] {
  const group = groups.open()
  group.close()
  const folders = new Set([...group.folders.values()].map((folder) => dirname(folder)))
  group.remove()
  return [...folders]
}

t.test('a group has its limits, and goes when it is told to', { skip }, async (t) => {
  const group = groups.open()
  const memory = group.folders.get('memory')!
  const limitFile = existsSync(join(memory, 'memory.max')) ? 'memory.max' : 'memory.limit_in_bytes'
  t.equal(readFileSync(join(memory, limitFile), 'utf8').trim(), String(LIMITS.memoryBytes))
  t.equal(readFileSync(join(group.folders.get('pids')!, 'pids.max'), 'utf8').trim(), String(LIMITS.tasks))
  t.equal(group.descriptors.length, new Set(group.folders.values()).size)
  group.close()
  group.remove()
  for (const folder of group.folders.values()) t.notOk(existsSync(folder))
})

t.test('only the controllers that are asked for', { skip }, async (t) => {
  const group = prepareHostGroups(LIMITS, ['pids']).open()
  t.strictSame([...group.folders.keys()], ['pids'])
  group.close()
  group.remove()
})

t.test('what servers that are gone have left is taken away, and what still runs is not', { skip }, async (t) => {
  const [parent = ''] = parents()
  const gone = spawnSync('true').pid
  const [empty, populated, other] = [`carpool-${gone}-1`, `carpool-${gone}-2`, `carpool-x-${gone}`].map((name) =>
    join(parent, name),
  )
  for (const folder of [empty!, populated!, other!]) mkdirSync(folder)
  const living = spawn('sleep', ['1000'])
  t.teardown(async () => {
    living.kill()
    await once(living, 'exit')
    for (const folder of [populated!, other!]) rmdirSync(folder)
  })
  writeFileSync(join(populated!, 'cgroup.procs'), String(living.pid))
  prepareHostGroups(LIMITS, undefined, true)
  t.ok(existsSync(empty!), 'who only looks removes nothing')
  prepareHostGroups(LIMITS)
  t.notOk(existsSync(empty!))
  t.ok(existsSync(populated!), 'it may be that of somebody who has the same numbers for other processes')
  t.ok(existsSync(other!), 'not ours')
  t.equal(living.exitCode, null)
})

t.test('nothing is left of a try', { skip }, async (t) => {
  for (const parent of parents())
    t.notOk(
      readdirSync(parent).some((name) => name.startsWith(`carpool-${process.pid}-`)),
      parent,
    )
})
