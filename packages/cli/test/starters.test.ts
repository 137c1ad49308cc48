/** Which of the processes above one it must not outlive, in tables of processes as the system shows them. */
import type { ProcessReading } from '@carpool/server/discovery'
import t from 'tap'
import { findStarters, type Surroundings } from '../src/starters.ts'

const SELF = 100
/** A login shell leads the session; what is typed in it is a job, with a group of its own. */
const SHELL = 10
const JOB = 20

type Row = readonly [pid: number, name: string, parentPid: number, groupId?: number, sessionId?: number]

const LOGIN: readonly Row[] = [
  [1, 'init', 0, 1, 1],
  [SHELL, 'bash', 1, SHELL, SHELL],
]

function starters(rows: readonly Row[], given: Partial<Surroundings> = {}) {
  const table = new Map(
    [...LOGIN, ...rows].map(([pid, name, parentPid, groupId = JOB, sessionId = SHELL]): [number, ProcessReading] => [
      pid,
      { pid, name, state: 'S', parentPid, groupId, sessionId, startTicks: String(pid) },
    ]),
  )
  const { watched, ...rest } = findStarters({
    self: { pid: SELF, parentPid: rows.find(([pid]) => pid === SELF)?.[2] ?? 0 },
    read: (pid) => table.get(pid),
    isUnderNpm: false,
    hasLauncher: false,
    isUnderNohup: () => false,
    ...given,
  })
  return { watched: watched.map(({ pid }) => pid), ...rest }
}

const NPM: Row = [20, 'npm exec carpoo', SHELL]
const SH: Row = [30, 'sh', 20]
const LAUNCHER: Row = [40, 'node', 30]

t.test('without npm it is the parent', async (t) => {
  const script: Row[] = [
    [20, 'sh', SHELL],
    [SELF, 'node', 20],
  ]
  t.match(starters(script), { watched: [20], isOrphan: false, isNextToNpm: false, isUnderNohup: false })
  t.match(starters([[SELF, 'node', SHELL]]), { watched: [SHELL] })
})

t.test('a launcher is not the starter: its parent is', async (t) => {
  const rows: Row[] = [
    [40, 'node', SHELL],
    [SELF, 'node', 40],
  ]
  t.match(starters(rows, { hasLauncher: true }), { watched: [40, SHELL] })
})

t.test('under npm it is everything up to npm, and who started that', async (t) => {
  const rows: Row[] = [NPM, SH, LAUNCHER, [SELF, 'node', 40]]
  t.match(starters(rows, { isUnderNpm: true, hasLauncher: true }), { watched: [40, 30, 20, SHELL], isNextToNpm: false })
})

t.test('npm in npm: the outer one as well', async (t) => {
  const rows: Row[] = [
    [20, 'npm run outer', SHELL],
    [25, 'sh', 20],
    [27, 'npm start', 25],
    [SELF, 'node', 27],
  ]
  t.match(starters(rows, { isUnderNpm: true }), { watched: [27, 25, 20, SHELL], isNextToNpm: true })
})

t.test('a shell that npm started is where the command begins if it is typed in there', async (t) => {
  const rows: Row[] = [NPM, SH, [35, 'bash', 30], [SELF, 'node', 35, SELF]]
  t.match(starters(rows, { isUnderNpm: true }), { watched: [35], isOrphan: false })
})

t.test('npm next to it passes signals on, also through a launcher', async (t) => {
  t.match(starters([NPM, [SELF, 'node', 20]], { isUnderNpm: true }), { isNextToNpm: true })
  const launched: Row[] = [NPM, [40, 'node', 20], [SELF, 'node', 40]]
  t.match(starters(launched, { isUnderNpm: true, hasLauncher: true }), { isNextToNpm: true })
  t.match(starters([NPM, [SELF, 'node', 20]]), { isNextToNpm: false }, 'a program that is only called so')
})

t.test('under nohup the shell above may end, and npm may not', async (t) => {
  const rows: Row[] = [NPM, SH, [SELF, 'node', 30]]
  const isUnderNohup = (topPid: number): boolean => topPid === 20
  t.match(starters(rows, { isUnderNpm: true, isUnderNohup }), { watched: [30, 20], isUnderNohup: true })
  t.match(starters([[SELF, 'node', SHELL]], { isUnderNohup: (topPid) => topPid === SELF }), { watched: [], isUnderNohup: true })
})

t.test('under nohup in a script of npm that has ended, the outer npm may end as well', async (t) => {
  const rows: Row[] = [
    [20, 'npm run outer', SHELL],
    [25, 'bash', 20],
    [27, 'npm start', 25],
    [SELF, 'node', 27],
  ]
  t.match(starters(rows, { isUnderNpm: true, isUnderNohup: (topPid) => topPid === 27 }), { watched: [27] })
})

t.test('the leader of a session outlives its starter', async (t) => {
  t.match(starters([[SELF, 'node', SHELL, SELF, SELF]]), { watched: [], isOrphan: false })
  const rows: Row[] = [
    [20, 'npm start', SHELL, 20, 20],
    [SELF, 'node', 20, 20, 20],
  ]
  t.match(starters(rows, { isUnderNpm: true }), { watched: [20] })
})

t.test('a service has only the first process above it', async (t) => {
  t.match(starters([[SELF, 'node', 1, SELF, SELF]]), { watched: [] })
  t.match(starters([[SELF, 'node', 1, 1, 1]]), { watched: [] }, 'in the session of that process, as in a container')
})

t.test('what npm started and left before anybody looked is an orphan; what it started apart is not', async (t) => {
  t.match(
    starters(
      [
        [30, 'sh', 1],
        [SELF, 'node', 30],
      ],
      { isUnderNpm: true },
    ),
    { isOrphan: true },
  )
  t.match(starters([[SELF, 'node', 1]], { isUnderNpm: true }), { isOrphan: true })
  t.match(starters([[SELF, 'node', 1, SELF, SELF]], { isUnderNpm: true }), { isOrphan: false })
  t.match(starters([[SELF, 'node', 1]]), { isOrphan: false })
  const other: Row[] = [
    [5, 'systemd', 1, 5, 5],
    [SELF, 'node', 5],
  ]
  t.match(starters(other, { isUnderNpm: true }), { isOrphan: true }, 'another process took it')
})

t.test('so is what has lost its launcher', async (t) => {
  t.match(starters([[SELF, 'node', 1]], { hasLauncher: true }), { isOrphan: true })
  t.match(
    starters([[SELF, 'node', 1, SELF, SELF]], { hasLauncher: true }),
    { isOrphan: false },
    'a service that somebody talks to',
  )
})

t.test('a parent that cannot be seen is watched all the same', async (t) => {
  t.match(starters([[SELF, 'node', 77]]), { watched: [77] })
})

t.test('what the system shows of another process with this id does not count', async (t) => {
  t.match(starters([[SELF, 'other', 77]], { self: { pid: SELF, parentPid: 20 } }), { watched: [20] })
})

t.test('where the system shows no processes, it is the parent', async (t) => {
  const read = (): undefined => undefined
  const self = { pid: SELF, parentPid: 20 }
  t.match(starters([], { read, self }), { watched: [20] })
  t.match(starters([], { read, self: { pid: SELF, parentPid: 1 } }), { watched: [] })
  t.match(starters([], { read, self, isUnderNohup: () => true }), { watched: [] })
  t.match(starters([], { read, self, isUnderNohup: () => true, hasLauncher: true }), { watched: [20] })
})
