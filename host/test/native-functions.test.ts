/** Native functions as the addon gives them, with arguments that no code of ours would give. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isolateWith } from './support/isolate.ts'

/** The C library's own look at each block of memory that is freed. */
const CHECKS = ['/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu', '/usr/lib64']
  .map((folder) => join(folder, 'libc_malloc_debug.so.0'))
  .find((file) => existsSync(file))

t.test('what a library asks for it may write to, whatever the size', { skip: CHECKS === undefined }, (t) => {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-node-snapshot', join(import.meta.dirname, 'support/block-types.ts')],
    { encoding: 'utf8', env: { ...process.env, LD_PRELOAD: CHECKS, MALLOC_CHECK_: '3' } },
  )
  t.match({ status, signal, stdout }, { status: 0, signal: null, stdout: 'decompressed\n' }, stderr)
  t.end()
})

t.test('no text leaves an isolate that is longer than any that the runtime has to say', async (t) => {
  const { run, messages } = await isolateWith(t)
  t.equal(
    await run(`try { say('\\u20ac'.repeat(2 ** 20 + 1), '') } catch (error) { String(error) }`),
    'RangeError: The text is too long to be said.',
  )
  await run(`say('\\u20ac'.repeat(2 ** 20), '')`)
  t.same(messages(), [])
})
