import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/**
 * Runs `run(argument)` of a module in a Node.js of its own, which gives a text, without what tap puts into those that tests
 * start.
 */
export async function inNode(file: string, argument = ''): Promise<string> {
  const [path, given] = [file, argument].map((text) => JSON.stringify(text))
  const script = `import(${path}).then(async ({ run }) => { process.stdout.write('\\n=' + (await run(${given})), () => process.exit()) })`
  const variables = ['-i', `PATH=${process.env['PATH']}`, 'NODE_ENV=production', 'TZ=UTC']
  const { stdout } = await promisify(execFile)('env', [...variables, process.execPath, '-e', script], { maxBuffer: 2 ** 26 })
  return stdout.slice(stdout.lastIndexOf('\n=') + 2)
}
