/** Every code block of the README: files are written, commands are run in order, and what they print is what the README says. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT, startCarpool, untilEnd } from '../support/command.ts'
import { startServer, temporaryFolder } from '../support/server.ts'

interface Block {
  readonly language: string
  /** What stands behind the language: the file to write, if any. */
  readonly file: string
  readonly content: string
}

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const blocks: Block[] = [...readme.matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(
  ([, language = '', file = '', content = '']) => ({
    language,
    file,
    content,
  }),
)

/** What a test of its own runs: `npm start` in examples/test, and `npm test` is what runs this. */
const SET_UP = ['npm ci && npm start\n', 'npm ci && npm test\n']

t.test('the README has the commands that other tests run', async (t) => {
  const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts
  for (const command of SET_UP) t.ok(blocks.some(({ content }) => content === command))
  for (const [, name = ''] of readme.matchAll(/npm run ([\w:]+)/g)) t.hasProp(scripts, name)
})

t.test('the blocks of the README work in order', async (t) => {
  const server = await startServer(t)
  const folder = temporaryFolder(t)
  let printed = ''
  for (const { language, file, content } of blocks) {
    if (file !== '') {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), content)
    } else if (language === 'sh' && !SET_UP.includes(content)) {
      printed = ''
      for (const line of content.trim().split('\n'))
        printed += await shell(line, folder, server.url, server.adminUrl, server.stateDir)
    } else if (language === 'text') {
      t.equal(firstMissing(printed, content), undefined, `the README shows what is printed:\n${content}`)
    }
  }
})

t.test('npx carpool works in the checkout', async (t) => {
  const { stdout } = await promisify(execFile)('npx', ['carpool', '--help'], { cwd: ROOT })
  for (const command of [
    'serve',
    'dev',
    'deploy',
    'list',
    'invoke',
    'logs',
    'usage',
    'invocations',
    'bill',
    'status',
    'delete',
    'token',
    'secret',
    'audit',
    'enable',
    'disable',
    'doctor',
  ])
    t.match(stdout, new RegExp(`^ +${command}\\b`, 'm'))
})

t.test('relative links lead somewhere', async (t) => {
  for (const [, target = ''] of readme.matchAll(/\]\((?!http)([^)#]+)\)/g)) t.ok(existsSync(join(ROOT, target)), target)
})

/** Runs a command line of the README, with the addresses of the test's server in place of the default ones. */
async function shell(line: string, folder: string, url: string, adminUrl: string, stateDir: string): Promise<string> {
  if (line.startsWith('npx carpool ')) {
    const args = line.slice('npx carpool '.length).split(' ')
    const env = { CARPOOL_STATE_DIR: stateDir, CARPOOL_URL: adminUrl }
    const { code, stdout, stderr } = await untilEnd(startCarpool(args, env, folder))
    if (code !== 0) throw new Error(`${line} ended with code ${code}: ${stderr}`)
    return stdout
  }
  const { stdout } = await promisify(execFile)('bash', ['-c', line.replaceAll('http://127.0.0.1:8080', url)], { cwd: folder })
  return stdout
}

/** The first line that was not printed, after those before it; `…` stands for anything. */
function firstMissing(printed: string, expected: string): string | undefined {
  const lines = printed.split('\n').values()
  return expected
    .trim()
    .split('\n')
    .find((line) => {
      const pattern = new RegExp(line.split('…').map(RegExp.escape).join('.*'))
      return !lines.some((candidate) => pattern.test(candidate))
    })
}
