/** Sends the control plane of a real server what its OpenAPI document allows and what it does not: nothing is a fault of ours. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { untilEnd } from '../support/command.ts'
import { startServer, temporaryFolder } from '../support/server.ts'

const SCHEMATHESIS = 'schemathesis'
/** Cases for each operation; `npm run test:fuzz` takes more. */
const EXAMPLES = process.env['CARPOOL_FUZZ_EXAMPLES'] ?? '8'
const SEED = process.env['CARPOOL_FUZZ_SEED'] ?? '1'
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'ignored_auth',
]
/** Most requests are about a function that there is, and goes on to be. What is followed never ends. */
const CONFIG = `
[parameters]
"path.name" = "hello"
[[operations]]
include-operation-id = ["deleteFunction", "disableFunction"]
parameters = { "path.name" = "other" }
[[operations]]
include-operation-id = "readLogs"
parameters = { "query.follow" = false, "query.function" = "hello" }
`
const HELLO = `export default async (request, env) => Response.json({ env, body: await request.text(), head: [...request.headers] })`

const isThere = spawnSync(SCHEMATHESIS, ['--version']).error === undefined
// Who works on this without it may; the tests of a commit may not.
const skip = !isThere && process.env['CI'] !== 'true' && 'schemathesis is not there; npm run test:fuzz gets it'

t.test('schemathesis finds no request that is a fault of the control plane', { skip }, async (t) => {
  const server = await startServer(t)
  await server.deploy('hello', HELLO)
  const folder = temporaryFolder(t)
  const config = join(folder, 'schemathesis.toml')
  writeFileSync(config, CONFIG)
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim()
  const args = [
    `--config-file=${config}`,
    'run',
    `${server.adminUrl}/v1/openapi.json`,
    `--header=Authorization: Bearer ${token}`,
    `--checks=${CHECKS.join(',')}`,
    `--max-examples=${EXAMPLES}`,
    `--seed=${SEED}`,
    '--request-timeout=60',
    '--suppress-health-check=all',
    '--warnings=off',
    '--no-color',
  ]
  // Without what makes it draw its progress.
  const env = { PATH: process.env['PATH'], HOME: folder }
  const { code, stdout, stderr } = await untilEnd(
    spawn(SCHEMATHESIS, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }),
  )
  t.equal(code, 0, stdout.split('= FAILURES =').at(-1) + stderr)
  t.match(stdout, /\d+ generated, \d+ passed/)
  t.not((await server.get('/hello/')).status, 500, 'it serves as before')
  t.notMatch((await server.stop()).stderr, /"fault"/)
})
