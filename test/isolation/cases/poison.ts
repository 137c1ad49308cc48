/** Rows C06, C12 and M03 of the list of attacks: what V8 never gets out of, so that its process has to go. */
import { until } from '../../support/server.ts'
import { call } from '../harness/call.ts'
import { askControl, deployScript } from '../harness/control.ts'
import type { Attacked, CaseContext, IsolationCase } from '../harness/isolation-case.ts'

const LIMITS = { cpuMs: 100, wallMs: 5_000, memoryMb: 64 }
/** How long a call beside the attack waits, in ms: it is under way when the host is given up, and ends before that does. */
const HELD_MS = 600

const HELD = `(function () {
  return { default: { async fetch() { await new Promise((done) => setTimeout(done, ${HELD_MS})); return new Response('held') } } }
})`

/**
 * Attacks while another function has a call under way that nobody may begin again. It is answered, for the host finishes what
 * it has.
 */
async function attackBesideHeld({ t, rig, name, call: own }: CaseContext): Promise<Attacked> {
  const held = `${name}-held`
  const deployed = await deployScript(rig.server, held, { code: HELD })
  t.equal(deployed.status, 201)
  const beside = call(`${rig.server.url}/${held}/`, { method: 'POST', body: 'once' })
  await until(async () => (await rig.host()).inFlight > 0)
  const answer = await own()
  const { status, text } = await beside
  t.equal(`${status} ${text}`, '200 held', 'the call of another function is answered')
  return { answers: [answer] }
}

/** Never ends by itself, nor by being told to: the host is given up. */
function sticks(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return {
    id,
    group: id.startsWith('M') ? 'memory' : 'CPU',
    title,
    verdict: 'P',
    billed: 'cap',
    limits: LIMITS,
    expect: { code: /^(?:cpu-exceeded|memory-exceeded|host-lost|timeout)$/ },
    handler: `${handler}; return new Response('done')`,
    attack: attackBesideHeld,
    ...more,
  }
}

const LOOP = '(function () { return { default: { fetch() { for (;;); } } } })'

/** One function is stuck for good; the limits of another hold all the same. */
const STUCK_BESIDE: IsolationCase = {
  ...sticks(
    'C12',
    'a list of 2^53 - 1, and an endless loop in another function meanwhile',
    '[].includes.call({ length: 2 ** 53 - 1 }, 1)',
  ),
  attack: async ({ t, rig, name, call: own }) => {
    const looping = `${name}-loop`
    await deployScript(rig.server, looping, { code: LOOP, limits: LIMITS })
    const stuck = own()
    await until(async () => (await rig.host()).enteredIsolates > 0)
    const { code } = await call(`${rig.server.url}/${looping}/`)
    t.equal(code, 'cpu-exceeded', 'the other is ended at its limit')
    return { answers: [await stuck] }
  },
}

export const CPU_POISON_CASES: readonly IsolationCase[] = [
  sticks('C06a', 'includes of a list of 2^53 - 1', '[].includes.call({ length: 2 ** 53 - 1 }, 1)'),
  sticks('C06b', 'indexOf of a list of 2^53 - 1', '[].indexOf.call({ length: 2 ** 53 - 1, 0: 0 }, 1)'),
  sticks('C06c', 'fill of a list of 2^53 - 1', '[].fill.call({ length: 2 ** 53 - 1 }, 1)'),
  sticks('C06d', 'reverse of a list of 2^53 - 1', '[].reverse.call({ length: 2 ** 53 - 1 })'),
  sticks('C06e', 'includes of a Proxy of 2^53 - 1', '[].includes.call(new Proxy({ length: 2 ** 53 - 1 }, {}), 1)'),
  sticks('C06f', 'sort of a list of 2^53 - 1', '[].sort.call({ length: 2 ** 53 - 1 })'),
  sticks('C06g', 'a BigInt that is squared without end', 'let x = 3n; for (;;) x = x * x'),
  STUCK_BESIDE,
]

/** Most calls until a function is disabled. */
const MAX_STRIKES = 30

const DISABLED: IsolationCase = {
  ...sticks('M03f', 'the same again and again, until the function is disabled', 'new Array(1e9).fill(0)'),
  // What comes before it is known that its host is harmed may be lost with it before it has begun.
  billed: 'heartbeat',
  expect: { code: /^(?:cpu-exceeded|memory-exceeded|host-lost|isolate-lost|timeout)$/ },
  again: 'skipped',
  attack: async ({ t, rig, call: own }) => {
    const answers = [await own()]
    while (answers.at(-1)?.code !== 'function-disabled' && answers.length < MAX_STRIKES) {
      await rig.host()
      answers.push(await own())
    }
    t.match(answers.pop(), { status: 503, code: 'function-disabled' }, `${answers.length} calls before`)
    return { answers }
  },
  check: async ({ t, rig, name }) => {
    const response = await askControl(rig.server, `/v1/functions/${name}`)
    t.match(await response.json(), { state: 'disabled', reason: String }, 'the operator is told why')
  },
}

export const MEMORY_POISON_CASES: readonly IsolationCase[] = [
  sticks('M03a', 'an array of a thousand million, filled', 'new Array(1e9).fill(0)'),
  sticks('M03b', 'an array of a hundred million, filled', 'new Array(1e8).fill(0)'),
  sticks('M03c', 'slice of a text of 134 million', `[].slice.call('1'.repeat(0x7ffffff))`),
  sticks('M03d', 'join of a text of 134 million', `[].join.call('1'.repeat(0x7ffffff))`),
  sticks('M03e', 'JSON of 134 million numbers', `JSON.parse('[' + '1,'.repeat(0x7fffffd) + '1]')`),
  sticks('M03j', 'a text of 134 million split into characters', `'1'.repeat(0x7ffffff).split('')`),
  {
    ...sticks('M03k', 'a text of 536 million split into characters', `'1'.repeat(2 ** 29 - 100).split('')`),
    limits: { ...LIMITS, cpuMs: 5_000 },
    expect: { status: 502, code: 'memory-exceeded' },
  },
  DISABLED,
]
