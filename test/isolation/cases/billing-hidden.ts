/** Group C8 of the list of attacks, second part: work that hides from the bill, and calls that lie about it. */
import { call as callUrl, type Answer } from '../harness/call.ts'
import { deployScript, readLog } from '../harness/control.ts'
import type { CaseContext, IsolationCase } from '../harness/isolation-case.ts'
import { BURN, cpuUs, TURNS, usageOf } from '../support-b/burn.ts'
import { casesOf } from '../support-b/cases-of.ts'
import { askAsOperator } from '../support-b/control-answer.ts'
import { hostCpuSeconds } from '../support-b/host-cpu.ts'
import { eventually } from '../support-b/patience.ts'

const billing = casesOf('billing', { verdict: 'OK', scope: BURN, limits: { cpuMs: 10_000 }, isRepeatable: false })

/** The call is billed for little; the work behind it is its function's. */
const isBackground: NonNullable<IsolationCase['check']> = async ({ t, rig, name }, { records }) => {
  await eventually(t, 'the work is billed, and not to the calls', async () => {
    const used = await usageOf(rig.server, name)
    return used !== undefined && used.backgroundCpuUs > 3_000 && used.backgroundCpuUs > used.cpuUs
  })
  t.ok(records.every((record) => record['outcome'] === 'ok'))
}

/** The call after it pays for its own work only. */
async function thenAnother({ t, call, rig, name }: CaseContext, path: string): Promise<{ answers: Answer[] }> {
  const answers = [await call(path)]
  await eventually(t, 'the work behind the answer is done', async () =>
    (await readLog(rig.server, name)).some(({ msg }) => msg === 'worked'),
  )
  answers.push(await call('/'))
  return { answers }
}

const HIDDEN = [
  billing('B05a', 'work in a promise behind the answer', {
    handler: `
      if (turnsOf(request) > 0) {
        const { promise, resolve } = Promise.withResolvers();
        setTimeout(resolve, 20);
        promise.then(() => { burn(turnsOf(request)); console.log('worked') });
      }
      return new Response('early')`,
    attack: (context) => thenAnother(context, `/?turns=${2 * TURNS}`),
    check: isBackground,
  }),
  billing('B05b', 'work in a timer that is left over', {
    handler: `
      if (turnsOf(request) > 0) ctx.waitUntil(new Promise((done) => setTimeout(() => { burn(turnsOf(request)); console.log('worked'); done() }, 20)));
      return new Response('early')`,
    attack: (context) => thenAnother(context, `/?turns=${2 * TURNS}`),
    check: isBackground,
  }),
  billing('B05c', 'work behind a fetch that nobody waits for', {
    handler: `
      if (turnsOf(request) > 0) fetch(env.UPSTREAM).then(() => { burn(turnsOf(request)); console.log('worked') });
      return new Response('early')`,
    attack: (context) => thenAnother(context, `/?turns=${2 * TURNS}`),
    check: isBackground,
  }),
  billing('B12a', 'work in microtasks behind the answer', {
    handler: `if (turnsOf(request) > 0) queueMicrotask(() => queueMicrotask(() => { burn(turnsOf(request)); console.log('worked') })); return new Response('early')`,
    attack: (context) => thenAnother(context, `/?turns=${2 * TURNS}`),
    check: async ({ t, rig, name }, { records }) => {
      const [first, second] = records.map(cpuUs)
      await eventually(t, 'the work is billed', async () => {
        const used = await usageOf(rig.server, name)
        return used !== undefined && used.backgroundCpuUs + (first ?? 0) > 3_000
      })
      t.ok(second !== undefined && second < 3_000, `not to the call after it, which is billed ${second} µs`)
    },
  }),
  billing('B12b', 'work while the answer is read', {
    handler: `
      const turns = turnsOf(request);
      const response = new Response('late');
      Object.defineProperty(response, 'headers', { get() { burn(turns); return new Headers() } });
      Object.defineProperty(response, 'status', { get() { burn(turns); return 200 } });
      class Odd extends Response { get headers() { burn(turns); return super.headers } get status() { burn(turns); return 200 } }
      return turns > 0 ? new Odd('late') : response`,
    request: { path: `/?turns=${2 * TURNS}` },
    check: ({ t }, { records }) => {
      // The getters may be read or not; if they are, it is on the bill.
      for (const record of records) t.ok(cpuUs(record) > 0, `${cpuUs(record)} µs`)
    },
  }),
  billing('B12c', 'ways to wait without a clock that runs', {
    verdict: 'R',
    handler: `return Response.json([typeof Atomics.wait, typeof Atomics.waitAsync, typeof SharedArrayBuffer, String(FinalizationRegistry).includes('[native code]')])`,
    expect: { status: 200, code: '', body: /^\["undefined","undefined","undefined",false\]$/ },
  }),
  billing('B11', 'work that falls on helper threads', {
    handler: `
      let kept;
      for (let round = 0; round < 40; round++) kept = Array.from({ length: 1e5 }, (_, index) => ({ index, text: 'x' + index }));
      return new Response(String(kept.length))`,
    attack: async ({ t, rig, call }) => {
      const answers = [await call(), await call()]
      await eventually(t, 'it is told as a part of its own', async () => ((await hostCpuSeconds(rig.server))['threads'] ?? 0) > 0)
      return { answers }
    },
  }),
]

const FORGED = [
  billing('B08', 'calls that all claim one id', {
    attack: async ({ call }) => {
      const headers = {
        'x-carpool-invocation': '01890000-0000-7000-8000-000000000000',
        'idempotency-key': 'one',
        'x-request-id': 'one',
      }
      return { answers: await Promise.all(Array.from({ length: 20 }, () => call('/', { headers }))) }
    },
    check: ({ t }, { answers, records }) => {
      t.equal(new Set(answers.map(({ id }) => id)).size, answers.length, 'each has an id of its own')
      t.equal(records.length, answers.length)
      t.notOk(records.some(({ id }) => id === '01890000-0000-7000-8000-000000000000'))
    },
  }),
  billing('B14', 'a function that states figures of its own', {
    handler: `return new Response('free', { headers: {
      'server-timing': 'cpu;dur=-1', 'x-carpool-invocation': 'none', 'x-carpool-error': 'internal', 'x-carpool-cpu-us': 'NaN',
    } })`,
    check: ({ t }, { answers, records }) => {
      for (const { id, headers } of answers) {
        const record = records.find((one) => one['id'] === id)
        t.ok(record !== undefined && cpuUs(record) > 0)
        t.match(headers.get('server-timing'), new RegExp(`cpu;dur=${cpuUs(record ?? {}) / 1000},`), 'what we say is there')
        t.equal(headers.get('server-timing')?.match(/cpu;dur/g)?.length, 1, 'and nothing that could pass for it')
        t.equal(headers.get('x-carpool-error'), null)
        t.equal(headers.get('x-carpool-cpu-us'), null)
      }
    },
  }),
  billing('B13a', 'calls that are refused', {
    verdict: 'R',
    handler: 'await new Promise(() => {})',
    limits: { concurrency: 1, wallMs: 800 },
    again: 'any',
    expect: { status: 429, code: 'too-many-requests' },
    attack: async ({ t, rig, call }) => {
      const before = (await hostCpuSeconds(rig.server))['starts']
      for (const path of ['/nobody-has-it/', '/', '/%00/']) t.equal((await callUrl(rig.server.url + path)).status, 404)
      t.equal((await hostCpuSeconds(rig.server))['starts'], before, 'nothing is started for what is not there')
      const holder = call()
      const answers = await eventually(t, 'three at once are too many', async () => {
        const refused = (await Promise.all([call(), call(), call()])).filter(({ code }) => code === 'too-many-requests')
        return refused.length > 0 && refused
      })
      await holder
      return { answers: answers ?? [] }
    },
    check: ({ t }, { records }) => {
      const refused = records.filter(({ outcome }) => outcome === 'refused')
      t.ok(refused.length > 0, 'they are recorded')
      for (const record of refused) t.match(record, { error: 'too-many-requests', cpu_us: 0, init_cpu_us: 0, bytes_out: 0 })
    },
  }),
  billing('B13b', 'a start that five calls wait for', {
    verdict: 'K',
    limits: { cpuMs: 60 },
    scope: `${BURN} burn(${2 * TURNS});`,
    handler: `if (turnsOf(request) > 0) for (;;); return new Response('started')`,
    expect: { code: /^(?:|cpu-exceeded)$/ },
    again: 'any',
    attack: async ({ call }) => {
      // The isolate of the deploy is there already: this ends it.
      const ended = await call('/?turns=1')
      return { answers: [ended, ...(await Promise.all(Array.from({ length: 5 }, () => call('/'))))] }
    },
    check: ({ t }, { answers, records }) => {
      const started = records.filter((record) => Number(record['init_cpu_us']) > 0)
      t.equal(
        started.length,
        1,
        `one of ${answers.length} pays for it: ${started.map((record) => record['init_cpu_us']).join()} µs`,
      )
      t.ok(records.filter((record) => record['start'] !== 'warm').length >= 1)
    },
  }),
  billing('B13c', 'a deploy that is refused, and one that works', {
    attack: async ({ t, rig, call }) => {
      const refused = await deployScript(rig.server, 'never-there', {
        code: '(function () { for (;;); })',
        limits: { wallMs: 300 },
      })
      t.equal(refused.status, 422)
      const { text } = await askAsOperator(rig.server, '/v1/usage')
      t.notMatch(text, 'never-there', 'nobody is billed for what never was there')
      return { answers: [await call()] }
    },
  }),
]

export const BILLING_HIDDEN_CASES: readonly IsolationCase[] = [...HIDDEN, ...FORGED]
