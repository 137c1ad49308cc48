/** The unit of docs/sandbox.md is one that systemd takes as it is. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ROOT } from '../support/command.ts'
import { temporaryFolder } from '../support/server.ts'

const INSTALLED = '/opt/carpool/node_modules/.bin/carpool'

const docs = readFileSync(join(ROOT, 'docs/sandbox.md'), 'utf8')
const unit = /^```ini\n(# \/etc\/systemd\/system\/carpool\.service\n.*?)^```$/ms.exec(docs)?.[1] ?? ''
const skip =
  spawnSync('systemd-analyze', ['--version']).status !== 0 && 'systemd-analyze is not installed; the package systemd has it'

/** What systemd has to say of a unit: it ignores what it does not understand, with a line about it. */
async function complaints(t: Test, text: string): Promise<readonly string[]> {
  const file = join(temporaryFolder(t), 'carpool.service')
  writeFileSync(file, text)
  const { stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file]).catch(
    (cause: { stderr: string }) => cause,
  )
  // Those of the machine's other units are not ours.
  return stderr.split('\n').filter((line) => line.includes('carpool.service'))
}

t.test('systemd understands the whole unit', { skip }, async (t) => {
  t.ok(unit.includes(`ExecStart=${INSTALLED} serve `))
  // The checkout may be in a folder whose name a unit would have to quote.
  const program = join(temporaryFolder(t), 'carpool')
  symlinkSync(join(ROOT, 'packages/cli/bin/carpool.js'), program)
  const installed = unit.replaceAll(INSTALLED, program)
  t.strictSame(await complaints(t, installed), [])
  t.match(await complaints(t, installed.replace('ProtectHome=yes', 'ProtectHome=sometimes')), [/protect home/i], 'it does look')
})
