import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const skip = !existsSync('/proc/self/environ') && 'there is no /proc to read it from'
const MODULE = join(import.meta.dirname, '../src/watch-starters.ts')
const ASKS = `import { isUnderNohup } from ${JSON.stringify(MODULE)}; console.log(isUnderNohup(process.pid, process.ppid))`
const NODE = ['-i', `PATH=${process.env['PATH']}`, '_=/usr/bin/nohup']

t.test('who was started by nohup has its name in the environment, and the one above has not', { skip }, async (t) => {
  t.equal(execFileSync('env', [...NODE, process.execPath, '-e', ASKS], { encoding: 'utf8' }), 'true\n')
  t.equal(execFileSync('env', ['-i', process.execPath, '-e', ASKS], { encoding: 'utf8' }), 'false\n')
})

t.test('what nohup started passes the name on to all that it starts, and those are not under it', { skip }, async (t) => {
  const line = `'${process.execPath}' -e "$0"; exit $?`
  t.equal(execFileSync('env', [...NODE, 'sh', '-c', line, ASKS], { encoding: 'utf8' }), 'false\n')
})
