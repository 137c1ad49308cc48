import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

/** The modules of undici that a process has loaded when it has imported another. */
async function undiciAfter(specifier: string): Promise<readonly string[]> {
  const program = `await import('${specifier}'); console.log(JSON.stringify(process.moduleLoadList))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return (JSON.parse(stdout) as string[]).filter((name) => name.includes('undici'))
}

t.test('what Carpool uses of node:http comes without undici', async (t) => {
  t.strictSame(await undiciAfter('@carpool/core/node-http'), [])
  t.not((await undiciAfter('node:http')).length, 0, 'an import of node:http still loads it, so the module is needed')
})
