/** Group C6 of the list of attacks, third part: files, secrets and code caches, and functions that ask the control plane. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deployScript, NO_MAP, readLog } from '../harness/control.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { NEIGHBOUR } from '../harness/neighbour.ts'
import { askAsOperator } from '../support-b/control-answer.ts'
import { outcomesIn, pathTo, tryAll, TRY_ALL, TRY_ONE } from '../support-b/fetch-attempts.ts'
import { filesIn, filesWith } from '../support-b/folder.ts'
import { startRawUpstream } from '../support-b/raw-upstream.ts'

const FINE = `(function () { return { default: { fetch: () => new Response('fine') } } })`

const FILES: IsolationCase[] = [
  {
    id: 'G08',
    group: 'gateway',
    title: 'names of files in code and source map that lead out of the data folder',
    verdict: 'OK',
    billed: 'full',
    handler: `throw new Error('mapped')`,
    expect: { status: 500, code: 'exception' },
    attack: async ({ t, rig, name, call }) => {
      const sources = ['../../../../etc/passwd', '/etc/passwd', 'C:\\\\windows', 'con', 'a\0b', '..\\..\\x', 'file:///etc/passwd']
      const sourceMap = JSON.stringify({
        version: 3,
        file: '/etc/cron.d/x',
        sourceRoot: '/',
        sources,
        names: [],
        mappings: 'AAAA',
      })
      const before = filesIn(rig.canary.dataDir)
      const code = `(function () { return { default: { fetch(request) { if (request.url.endsWith('/again')) return new Response('seen 1'); throw new Error('mapped') } } } })\n//# sourceURL=../../../../../../tmp/carpool-evil.js\n//# sourceMappingURL=file:///etc/passwd`
      const deployed = await deployScript(rig.server, name, { code, sourceMap })
      t.equal(deployed.status, 201)
      const answers = [await call()]
      const made = filesIn(rig.canary.dataDir).filter((file) => !before.includes(file))
      t.strictSame(
        made.filter((file) => !/^[\w-]+(?:\/[\w.-]+)*$/.test(file)),
        [],
        `made are ${made.length} files, with names of ours`,
      )
      t.notMatch(JSON.stringify(await readLog(rig.server, name)), /root:x:0/, 'no file is read')
      return { answers }
    },
  },
  {
    id: 'G09',
    group: 'gateway',
    title: 'a secret that is thrown, logged and sent in every form, and looked for by others',
    verdict: 'E',
    billed: 'full',
    expect: { status: 500, code: 'exception' },
    handler: `
      const { API_KEY: key } = env;
      console.log(key, btoa(key), encodeURIComponent(key), [...key].map((c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join(''));
      console.error({ nested: [key] });
      throw new Error('cannot use ' + key)`,
    attack: async ({ t, rig, name, call }) => {
      const secret = 'sesame!open&me/please+now'
      const path = `/v1/functions/${name}/secrets`
      const put = await askAsOperator(rig.server, `${path}/API_KEY`, { method: 'PUT', body: JSON.stringify({ value: secret }) })
      t.ok(put.status < 300, put.text)
      const forms = [secret, btoa(secret).slice(0, -4), encodeURIComponent(secret), Buffer.from(secret).toString('hex')]
      const answer = await call()
      const shown = [
        JSON.stringify(await readLog(rig.server, name)),
        answer.text,
        ...(await Promise.all(
          [path, `/v1/functions/${name}`, '/v1/functions', '/v1/audit', `/v1/invocations`].map(
            async (one) => (await askAsOperator(rig.server, one)).text,
          ),
        )),
      ].join('\n')
      t.match(shown, 'API_KEY', 'its name is there')
      for (const form of forms) t.notOk(shown.includes(form), `not as ${form.slice(0, 6)}…`)
      t.strictSame(filesWith(rig.canary.dataDir, secret), [], 'nor in a file')
      const neighbours = await rig.neighbour.check()
      t.notOk(neighbours.answer.text.includes(secret))
      return { answers: [answer] }
    },
  },
  {
    id: 'G12a',
    group: 'gateway',
    title: 'a code cache in a deploy',
    verdict: 'R',
    billed: 'none',
    expect: { status: 400, code: 'bad-request' },
    again: 'any',
    attack: async ({ rig, name }) => {
      const body = JSON.stringify({ code: FINE, sourceMap: NO_MAP, codeCache: 'AAAA', cachedData: 'AAAA' })
      return { answers: [await askAsOperator(rig.server, `/v1/functions/${name}/revisions`, { method: 'POST', body })] }
    },
  },
  {
    id: 'G12b',
    group: 'gateway',
    title: 'code caches on the disk that were tampered with',
    verdict: 'P',
    billed: 'full',
    expect: { status: 200, code: '' },
    again: 'any',
    attack: async ({ t, rig, call }) => {
      const folder = rig.canary.dataDir
      const caches = filesIn(folder).filter((file) => file.endsWith('.cache'))
      t.ok(caches.length > 0, `${caches.length} caches`)
      for (const file of caches) {
        const content = readFileSync(join(folder, file))
        for (let at = 64; at < content.length; at += 97) content[at] = (content[at] ?? 0) ^ 0xff
        writeFileSync(join(folder, file), content)
      }
      // A new host reads them.
      process.kill((await rig.host()).pid, 'SIGKILL')
      const answer = await call()
      const { wrong } = await rig.neighbour.check()
      t.equal(wrong, undefined, 'the neighbour works without its cache')
      return { answers: [answer] }
    },
  },
]

const SELF_CALLS: IsolationCase[] = [
  {
    id: 'G11a',
    group: 'gateway',
    title: 'a redirect to the control plane',
    verdict: 'R',
    billed: 'full',
    handler: TRY_ONE,
    expect: { status: 200, code: '', body: /^refused: TypeError: / },
    attack: async ({ t, rig, call }) => {
      const upstream = await startRawUpstream(t, (socket) => {
        socket.write(`HTTP/1.1 307 Moved\r\nlocation: ${rig.server.adminUrl}/v1/functions\r\ncontent-length: 0\r\n\r\n`)
      })
      return { answers: [await call(pathTo(upstream.url))] }
    },
  },
]

const OPENED: IsolationCase[] = [
  {
    id: 'G11b',
    group: 'gateway',
    title: 'the control plane, where the operator has opened loopback',
    verdict: 'R',
    billed: 'full',
    handler: TRY_ALL,
    attack: tryAll(({ server }) => [
      { url: `${server.adminUrl}/v1/functions` },
      { url: `${server.adminUrl}/v1/functions`, headers: { authorization: 'Bearer guess', host: 'localhost' } },
      { url: `${server.adminUrl}/v1/functions/${NEIGHBOUR}`, method: 'DELETE' },
      { url: `${server.adminUrl}/v1/status` },
      { url: `${server.url}/v1/functions` },
    ]),
    check: ({ t }, { answers }) => {
      for (const outcome of outcomesIn(answers)) t.match(outcome, /^answered (?:401|404) |^TypeError: /)
    },
  },
]

export const GATEWAY_FILE_CASES: readonly IsolationCase[] = [...FILES, ...SELF_CALLS]
/** Where functions may fetch from 127.0.0.1. */
export const GATEWAY_OPENED_CASES: readonly IsolationCase[] = OPENED
