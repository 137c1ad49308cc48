import { execFileSync } from 'node:child_process'
import t from 'tap'
import { openFileLimit } from '../src/open-file-limit.ts'

t.test('it is what the system lets the process have', { skip: process.platform !== 'linux' && 'no /proc' }, async (t) => {
  const program = `
    import { openFileLimit } from ${JSON.stringify(new URL('../src/open-file-limit.ts', import.meta.url).href)}
    console.log(openFileLimit())`
  const line = 'ulimit -n 321; exec env -i "$0" --input-type=module -e "$1"'
  t.equal(execFileSync('sh', ['-c', line, process.execPath, program], { encoding: 'utf8' }).trim(), '321')
})

t.test('it is some number', async (t) => t.ok(openFileLimit() > 0))
