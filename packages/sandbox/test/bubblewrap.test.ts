/** Programs that stand where bubblewrap should, each with a fault of its own; they are run as a real one would be. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES } from '../src/layers.ts'
import { bubblewrapProblem, findTools, versionProblem } from '../src/tools.ts'
import { remedyFor } from '../src/unavailable.ts'

const isRoot = process.getuid?.() === 0

/** A program of lines of shell. */
function standIn(t: Test, lines: string, mode = 0o755, firstLine = '#!/bin/sh'): string {
  const path = join(t.testdir(), 'bwrap')
  writeFileSync(path, `${firstLine}\n${lines}\n`)
  chmodSync(path, mode)
  return path
}

async function problemOf(t: Test, ...given: [lines: string, mode?: number, firstLine?: string]) {
  const path = standIn(t, ...given)
  const problem = await bubblewrapProblem(path)
  return problem && { ...problem, why: problem.why.replace(path, 'bwrap') }
}

t.test('one that tells a version that is new enough is sound', async (t) => {
  for (const version of ['0.3.1', '0.4.0', '0.11', '1.0.0', '0.8.0-2+deb12u1'])
    t.equal(await problemOf(t, `[ "$1" = --version ] && echo bubblewrap ${version}`), undefined, version)
})

t.test('one that is too old', async (t) => {
  for (const version of ['0.3.0', '0.2.99', '0.1']) {
    const { why = '', remedy = '' } = (await problemOf(t, `echo bubblewrap ${version}`)) ?? {}
    t.match(why, /^bwrap is there, but it is too old: it is 0\.\d+(\.\d+)?, and 0\.3\.1 is needed\.$/)
    t.equal(remedy, 'Install bubblewrap 0.3.1 or newer.')
  }
})

t.test('one that is broken', async (t) => {
  const anew = { remedy: /apt install --reinstall bubblewrap/ }
  t.match(await problemOf(t, 'echo "error while loading libcap.so.2" >&2; exit 127'), {
    why: 'bwrap is there, but it is broken: "bwrap --version" ended with exit code 127, and said: error while loading libcap.so.2.',
    ...anew,
  })
  t.match(await problemOf(t, 'exit 1'), { why: /ended with exit code 1\.$/, ...anew })
  t.match(await problemOf(t, 'kill -SEGV $$'), { why: /ended with SIGSEGV\.$/, ...anew })
  t.match(await problemOf(t, ''), { why: 'bwrap is there, but it is no bubblewrap: to --version it says nothing.', ...anew })
  t.match(await problemOf(t, ':', 0o755, '#!/nothing/here'), { why: 'bwrap is there, but it does not start (ENOENT).', ...anew })
})

t.test('garbage that it prints is shown in short, and harms no terminal', async (t) => {
  const garbage = await problemOf(
    t,
    `printf '\\033[2J\\007\\377 a\\n\\n\\342\\200\\256b\\n'; head -c 100000 /dev/zero | tr '\\0' x`,
  )
  t.match(garbage, { why: /^bwrap is there, but it is no bubblewrap: to --version it says � a b x+ …\.$/ })
  t.notMatch(garbage?.why, /[\p{Cc}\p{Cf}]/u)
  t.ok((garbage?.why.length ?? 0) < 500)
})

t.test('one that may not be run', async (t) => {
  t.match(await problemOf(t, 'echo bubblewrap 0.8.0', 0o644), {
    why: 'bwrap is there, but this user may not run it (Permission denied).',
    remedy: /Let everyone run bwrap/,
  })
})

t.test(
  'one that only root may run, whose hosts are of another user',
  { skip: !isRoot && 'only root can be somebody else' },
  async (t) => {
    const path = standIn(t, 'echo bubblewrap 0.8.0', 0o700)
    t.equal(await bubblewrapProblem(path), undefined)
    t.match(await bubblewrapProblem(path, 60_999), {
      why: `${path} is there, but user 60999 may not run it (Permission denied).`,
    })
  },
)

t.test('one that is to be run as a user who is not there is run as this one', async (t) => {
  const path = standIn(t, 'echo bubblewrap 0.2.0; id -u >&2')
  const module = new URL('../src/tools.ts', import.meta.url).href
  const code = `import { bubblewrapProblem } from '${module}'; console.log((await bubblewrapProblem('${path}', 60999)).why)`
  // In a user namespace with one user. The environment is empty, for tap hooks into every Node.js process that a test starts.
  const namespace = ['--user', '--map-root-user', 'env', '-i', process.execPath, '--input-type=module', '-e', code]
  const { status, stdout, stderr } = spawnSync('unshare', namespace, { encoding: 'utf8' })
  if (status !== 0 && stderr.startsWith('unshare')) t.pass('user namespaces cannot be made here', { skip: true })
  else t.match(stdout, `${path} is there, but it is too old`, stderr)
})

// These two wait for as long as one may take.
t.jobs = 2
t.test('one that hangs is given up, with all that it has started', { buffered: true }, async (t) => {
  const file = join(t.testdir(), 'pid')
  const path = standIn(t, `sleep 600 &\necho $! >'${file}.tmp'; mv '${file}.tmp' '${file}'\nwait`)
  t.match(await bubblewrapProblem(path), {
    why: `${path} is there, but it hangs: "bwrap --version" did not end within 5 s.`,
    remedy: /apt install --reinstall bubblewrap/,
  })
  await untilGone(Number(readFileSync(file, 'utf8')))
})

t.test('one that ends but leaves somebody behind who holds its output is given up as well', { buffered: true }, async (t) => {
  t.match(await problemOf(t, 'echo bubblewrap 0.8.0; sleep 600 &'), { why: /it hangs/ })
})

t.test('every fault is a sentence with what helps, and what helps names no file', async (t) => {
  const output = { stdout: '', stderr: '' }
  const answers = [
    { ...output, error: 'EACCES' },
    { ...output, error: 'ENOENT' },
    output,
    { ...output, end: { exitCode: 1, signal: null } },
    { ...output, end: { exitCode: null, signal: 'SIGSEGV' as const } },
    { stdout: 'x', stderr: '', end: { exitCode: 0, signal: null } },
    { stdout: 'bubblewrap 0.1.0', stderr: '', end: { exitCode: 0, signal: null } },
  ]
  for (const answer of answers) {
    const { why = '', remedy = '' } = versionProblem('/some/bwrap', answer) ?? {}
    t.match(why, /^\/some\/bwrap is there, but .*\.$/)
    t.match(remedy, /^[A-Z].*\.$/)
    t.notMatch(remedy, '/some')
  }
})

t.test('one that cannot be executed is found, but one that can is preferred', async (t) => {
  const root = t.testdir({ first: { bwrap: '', setpriv: '' }, second: { bwrap: '', sh: '' } })
  const folders = ['none', 'first', 'second'].map((name) => join(root, name))
  t.strictSame(findTools(folders), { bubblewrap: join(root, 'first', 'bwrap') })
  for (const path of ['second/bwrap', 'second/sh']) chmodSync(join(root, path), 0o755)
  t.strictSame(findTools(folders), { sh: join(root, 'second', 'sh'), bubblewrap: join(root, 'second', 'bwrap') })
  mkdirSync(join(root, 'none'))
  t.strictSame(findTools([join(root, 'none')]), {})
})

t.test('where it is sound and does not work, what it says tells what helps', async (t) => {
  const network = (error: string) => remedyFor('network-namespace', error)
  for (const error of [
    "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.",
    'bwrap: setting up uid map: Permission denied',
    'bwrap: Creating new namespace failed: Operation not permitted',
    'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)',
    'bwrap: Creating new namespace failed: No space left on device',
    'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted',
  ]) {
    t.match(network(error), /may not do it here: docs\/sandbox\.md/, error)
  }
  t.match(
    network(
      'bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems.',
    ),
    /kernel lacks it/,
  )
  t.match(network('It ended with SIGSEGV.'), /apt install --reinstall/)
  for (const name of LAYER_NAMES) t.equal(remedyFor(name, 'Permission denied') !== undefined, BUBBLEWRAP_LAYERS.has(name), name)
})

/** Waits until there is no such process, or only what its parent has not asked about. */
async function untilGone(pid: number): Promise<void> {
  for (;;) {
    try {
      if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) return
    } catch {
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
