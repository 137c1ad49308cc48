/**
 * The published packages, installed from their tarballs into an empty folder, as somebody has them whose Node.js is the
 * machine's own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { UsageRow } from '@carpool/core'
import t, { type Test } from 'tap'
import { ROOT, untilEnd } from '../../test/support/command.ts'
import { IS_WHOLE } from '../../test/support/form.ts'
import { temporaryFolder } from '../../test/support/server.ts'
import { environmentIn, noProc, Started, USERS_PATH } from '../../test/support/started.ts'

/** The settings of npm that come from the environment stay; all else of it is from the npm and the runner that run this. */
const OF_RUNNERS = /^(?:NODE_OPTIONS|NODE_COMPILE_CACHE|_?TAP|npm_(?!config_(?:registry|userconfig|globalconfig|cache)$))/
const NPM_ENVIRONMENT = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_RUNNERS.test(name))),
  PATH: USERS_PATH,
}

/** Starts a command in this environment alone: tap adds hooks to the one that it gives. */
function start(command: readonly string[], cwd: string, env: Readonly<Record<string, string | undefined>>) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...variables, ...command], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** @throws Error unless the exit code is 0 */
async function succeed(...args: Parameters<typeof start>): Promise<string> {
  const { code, stdout, stderr } = await untilEnd(start(...args))
  if (code !== 0) throw new Error(`${args[0].join(' ')} ended with ${code}: ${stderr}${stdout}`)
  return stdout
}

/** Why npm cannot install anything here; false: it can. */
async function noRegistry(): Promise<string | false> {
  const command = ['npm', 'view', 'fastify', 'version', '--fetch-retries=0', '--fetch-timeout=10000']
  const { code, stderr } = await untilEnd(start(command, ROOT, NPM_ENVIRONMENT))
  return code !== 0 && `npm reaches no registry: ${/code (\w+)/.exec(stderr)?.[1] ?? `exit ${code}`}`
}

/** The code blocks of the page that have a file's name. */
const embedding = new Map(
  [...readFileSync(join(ROOT, 'docs/embedding.md'), 'utf8').matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)].map(
    ([, file = '', content = '']) => [file, content] as const,
  ),
)

const PACKAGES = ['carpool', '@carpool/host', '@carpool/sdk']

/** What stands in for Node.js' modules comes from files beside the bundler, and from a package that only it imports. */
const BUILTINS = `import { EventEmitter } from 'node:events'
import { inspect } from 'node:util'
import { defineFunction } from '@carpool/sdk'

export default defineFunction({
  fetch() {
    const emitter = new EventEmitter()
    let heard = 0
    emitter.on('call', (by: number) => (heard += by))
    emitter.emit('call', 2)
    return new Response(inspect({ heard }))
  },
})
`

const TYPED = `import { run, untilStopped } from 'carpool'
import type { Carpool, CarpoolOptions, DeploymentOptions, GatewayOptions, ServerSettings } from '@carpool/host'
import { CarpoolError, startCarpool } from '@carpool/host'
import { defineConfig, invoke, type FetchHandler, type LambdaHandler } from '@carpool/sdk'

export const config = defineConfig({ memoryMb: 64, egress: ['api.example.com'] })
export const handler: LambdaHandler = async (event) => ({ statusCode: 200, body: event.rawPath })
export const fetcher: FetchHandler<{ KEY: string }> = { fetch: (request, env) => new Response(request.url + env.KEY) }
export const answer: Promise<Response> = invoke(fetcher, '/', { env: { KEY: 'x' } })
export const options: CarpoolOptions = { data: 'x', maxHosts: 1, allowEgress: ['10.0.0.0/8'], adminPort: 0 }
export const share: ServerSettings['saturationPercent'] = 80
export async function use(carpool: Carpool, deployment: DeploymentOptions): Promise<GatewayOptions> {
  try {
    await carpool.deploy('x', deployment)
  } catch (error) {
    if (error instanceof CarpoolError && error.code === 'no-handler') await carpool.close()
  }
  return carpool.gateway
}
export const code: Promise<number> = run(['--version'], process)
export const stopped: Promise<NodeJS.Signals | undefined> = untilStopped()
// @ts-expect-error -- the option does not exist
await startCarpool({ port: 1 })
// @ts-expect-error -- it is a number
export const wrong: CarpoolOptions = { maxHosts: '1' }
`

function compilerOptions(module: string, moduleResolution: string): string {
  const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }
  const rest = { target: 'esnext', lib: ['esnext'], types: ['node'], noEmit: true }
  return JSON.stringify({ compilerOptions: { ...strict, ...rest, module, moduleResolution }, include: ['**/*.ts'] })
}

// Node.js is large, and a machine may have much else to do.
t.setTimeout(300_000)

// npm fetches what they need. The servers of most other tests are packed in the same way (test/support/pack.ts).
if (IS_WHOLE) {
  t.test('the tarballs, installed', { skip: noProc || (await noRegistry()) }, installed)
} else {
  t.pass('npm run test:whole installs them')
}

async function installed(t: Test): Promise<void> {
  const folder = temporaryFolder(t)
  const project = join(folder, 'project')
  const out = join(folder, 'out')
  const write = (file: string, content: string): void => {
    mkdirSync(dirname(join(project, file)), { recursive: true })
    writeFileSync(join(project, file), content)
  }
  const env = environmentIn(folder)
  const carpool = (...args: string[]) => succeed(['npx', 'carpool', ...args], project, env)

  const printed = await succeed([process.execPath, join(ROOT, 'pack/src/main.ts'), out], ROOT, NPM_ENVIRONMENT)
  const tarballs = printed.trim().split('\n')
  t.equal(tarballs.length, PACKAGES.length)
  write('package.json', '{"name":"project","private":true,"type":"module"}')
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  const others = [`@types/node@${devDependencies['@types/node']}`]
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await succeed(['npm', 'install', ...flags, ...tarballs, ...others], project, NPM_ENVIRONMENT)
  for (const [file, content] of embedding) write(file, content)
  write('builtins/index.ts', BUILTINS)
  write('typed.ts', TYPED)

  t.test('nothing of the workspaces is left in them', async (t) => {
    for (const name of PACKAGES) {
      const place = join(project, 'node_modules', name)
      const files = globSync('**/*.{js,ts}', { cwd: place })
      t.ok(files.includes(join('dist', 'index.js')))
      for (const file of files.filter((file) => !file.startsWith('isolated-vm'))) {
        t.match(file, /\.js$|\.d\.ts$/)
        const imports = [
          ...readFileSync(join(place, file), 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*['"](@carpool\/[^'"]+)['"]/g),
        ]
        t.strictSame(
          imports.map(([, specifier]) => specifier),
          [],
          `${name}/${file}`,
        )
      }
    }
  })

  t.test('the command serves, deploys, and tells what was used', async (t) => {
    const started = new Started(t, ['npx', 'carpool', 'serve'], { cwd: project, env })
    const server = await started.serverIn(folder)
    await carpool('deploy', 'hello')
    await carpool('deploy', 'builtins')
    const { url } = server.address
    t.equal(await (await fetch(`${url}/hello/?name=Ada`)).text(), 'Hello Ada\n')
    t.equal(await (await fetch(`${url}/builtins/`)).text(), '{ heard: 2 }')
    const { rows } = JSON.parse(await carpool('usage', '--json')) as { rows: readonly UsageRow[] }
    t.strictSame(rows.map(({ key, invocations }) => `${invocations} of ${key}`).toSorted(), ['1 of builtins', '1 of hello'])
    t.match(await carpool('bill'), /lambda-2018/)
    started.root.kill('SIGTERM')
    await started.untilGone()
    await t.resolves(server.assertFree(), 'ports and data are free')
  })

  t.test('an app has functions answer at a place of its own, as the documentation shows it', async (t) => {
    const app = start(['node_modules/.bin/node', 'app.ts'], project, { ...env, PORT: '0' })
    t.teardown(() => app.kill('SIGKILL'))
    const end = untilEnd(app)
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: app.stdout }).on('line', (line) => {
        const [, address] = /^listening on (http:.*)$/.exec(line) ?? []
        if (address !== undefined) resolve(address)
      })
      void end.then(({ stdout, stderr }) => reject(new Error(stdout + stderr)))
    })
    t.equal(await (await fetch(url)).text(), 'The app itself\n')
    const response = await fetch(`${url}/functions/hello/?name=Ada`)
    t.equal(await response.text(), 'Hello Ada\n')
    t.match(response.headers.get('server-timing'), /cpu;dur=/)
    const nothing = await fetch(`${url}/functions/nothing/`)
    t.equal(nothing.headers.get('x-carpool-error'), 'not-found')
    await nothing.body?.cancel()
    app.kill('SIGTERM')
    await once(app, 'exit')
    t.match(await end, { code: 0, stdout: /hello is live, revision [0-9a-f]{16}/ })
  })

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const) {
    t.test(`their types hold for who resolves modules as ${moduleResolution}`, async (t) => {
      const file = `tsconfig.${moduleResolution}.json`
      write(file, compilerOptions(module, moduleResolution))
      const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
      const { code, stdout } = await untilEnd(start([process.execPath, compiler, '-p', file], project, env))
      t.equal(stdout, '')
      t.equal(code, 0)
    })
  }
}
