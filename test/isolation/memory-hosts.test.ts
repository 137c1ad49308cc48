/** Hosts of all sizes with functions that take far more than their limit: they get hosts of their own, and nobody loses calls. */
import t from 'tap'
import { startServer } from '../support/server.ts'
import { call, shown } from './harness/call.ts'
import { askControl, deployScript } from './harness/control.ts'
import { FORM } from './harness/form.ts'

const HOSTS_MB = FORM.isFull ? [192, 512, 1024] : [192]
const ATTACKERS = FORM.isFull ? [1, 2, 3, 4, 5] : [3]
/** An attacker calls once a second. */
const ROUND_MS = 1_000
/** Two strikes make a quarantine, and a round may pass while hosts are replaced. */
const MOST_ROUNDS = 15
const CALLS_PER_SECOND = 20

/** Keeps texts of half a gigabyte, or half that, one more with each call. */
const takes = (units: number): string => `(function () { return { default: { fetch() {
  const kept = globalThis.kept ??= []
  let text = '\\u1234'
  while (text.length < ${units}) text += text
  text.charCodeAt(5)
  kept.push(text)
  return new Response('kept ' + kept.length)
} } } })`
const LIVES = `(function () { return { default: {
  async fetch(request) { return new Response('heard ' + await request.text()) },
} } })`

/** Fill memory within their limit, which is far above what their host has. */
const FILLS = [
  'new Array(2 ** 17).fill(kept.length + 0.5)',
  'new Uint8Array(2 ** 20).fill(1)',
  'Array.from({ length: 2e4 }, () => new Temporal.PlainDate(2020, 1, 1))',
]
const fills = (piece: string): string => `(function () { return { default: { fetch() {
  const kept = []
  for (;;) kept.push(${piece})
} } } })`

/** Takes much, and gives it back. */
const CHURNS = `(function () { return { default: { async fetch(request) {
  const text = await request.text()
  for (let i = 0; i < 50; i++) JSON.parse(JSON.stringify(Array.from({ length: 1e4 }, (_, j) => text + i + j)))
  return new Response('heard ' + text)
} } } })`

for (const piece of FORM.hasVariants ? FILLS : FILLS.slice(0, 1)) {
  t.test(`if the system ends a host for want of memory, it was who had just taken much: ${piece}`, async (t) => {
    const flags = ['--min-hosts', '1', '--max-hosts', '1', '--standby-hosts', '1', '--host-memory-mb', '192']
    const server = await startServer(t, flags)
    const { sandbox } = await server.info()
    if (sandbox.off.some(({ layers }) => layers.includes('cgroup-memory'))) return t.comment('There are no control groups here.')
    await deployScript(server, 'neighbour', { code: CHURNS })
    await deployScript(server, 'filler', { code: fills(piece), limits: { memoryMb: 4096, cpuMs: 30_000 } })
    const stateOf = async (name: string): Promise<string> =>
      ((await (await askControl(server, `/v1/functions/${name}`)).json()) as { state: string }).state
    for (let round = 0; round < 5 && (await stateOf('filler')) === 'active'; round++) {
      const [filled, heard] = await Promise.all([
        call(`${server.url}/filler/`, { method: 'POST' }),
        call(`${server.url}/neighbour/`, { body: 'one', method: 'PUT' }),
      ])
      t.comment(`${shown(filled)}; ${shown(heard)}`)
    }
    t.equal(await stateOf('filler'), 'quarantined')
    t.equal(await stateOf('neighbour'), 'active')
  })
}

for (const hostMb of HOSTS_MB) {
  for (const attackers of ATTACKERS) {
    t.test(`a host of ${hostMb} MiB, and attackers: ${attackers}`, async (t) => {
      const flags = ['--min-hosts', '1', '--max-hosts', '1', '--standby-hosts', '1', '--host-memory-mb', String(hostMb)]
      const server = await startServer(t, flags)
      const names = Array.from({ length: attackers }, (_, index) => `attacker-${index}`)
      await deployScript(server, 'neighbour', { code: LIVES })
      for (const [index, name] of names.entries())
        await deployScript(server, name, { code: takes(2 ** (28 - (index % 2))), limits: { memoryMb: 32 } })
      const stateOf = async (name: string): Promise<string> =>
        ((await (await askControl(server, `/v1/functions/${name}`)).json()) as { state: string }).state

      const pending = new Set<Promise<void>>()
      let [round, count] = [0, 0]
      const lost: string[] = []
      const timer = setInterval(() => {
        const [inRound, body] = [round, String(count++)]
        const one = call(`${server.url}/neighbour/`, { method: 'POST', body }).then((answer) => {
          pending.delete(one)
          if (answer.text !== `heard ${body}`) lost.push(`round ${inRound}: ${shown(answer)}`)
        })
        pending.add(one)
      }, 1_000 / CALLS_PER_SECOND)
      let states: readonly string[] = []
      while (++round <= MOST_ROUNDS) {
        const pause = new Promise((resolve) => setTimeout(resolve, ROUND_MS))
        const answers = await Promise.all(names.map((name) => call(`${server.url}/${name}/`, { method: 'POST' })))
        await pause
        states = await Promise.all(names.map(stateOf))
        t.comment(`${round}: ${answers.map(({ status, code }) => `${status} ${code}`).join(', ')}; ${states.join(', ')}`)
        if (round > 2 && !states.includes('active')) break
      }
      clearInterval(timer)
      await Promise.all(pending)
      t.notOk(states.includes('active'), 'each attacker is in quarantine or disabled')
      t.equal(await stateOf('neighbour'), 'active', 'nobody takes the neighbour for one')
      const late = lost.filter((one) => !/^round [12]:/.test(one))
      t.strictSame(late, [], `no call of the neighbour is lost after the second round; ${lost.length} of ${count} before`)
      if (lost.length > 0) t.comment(lost.join('\n'))
      await server.stop()
    })
  }
}
