import type { Test } from 'tap'
import type { LedgerRow } from '../../support/ledger.ts'
import { call, shown, type Answer } from './call.ts'
import { checkBill } from './check-bill.ts'
import { checkHost, growthMb, isGivenUp, lookAtHost } from './check-host.ts'
import { checkAnswers } from './check-verdict.ts'
import { AGAIN_PATH, END_PATH, scriptOf } from './compose.ts'
import { deployScript, readLog, type Deployed } from './control.ts'
import { FORM } from './form.ts'
import type { CaseContext, IsolationCase } from './isolation-case.ts'
import { NEIGHBOUR, type Probe } from './neighbour.ts'
import { variantsOf } from './variants.ts'
import { recordsOf, untilRecorded } from './records.ts'
import { checkRig, startRig, type Rig, type RigOptions } from './rig.ts'
import { execMs, rowOf } from './row.ts'
import { keepRow } from './table.ts'
import { nameOf } from './there.ts'

/** The least that a busy machine may add to the neighbour's p99, in ms, and how many times what it is alone. */
const P99_SLACK_MS = 25
const P99_FACTOR = 2
/**
 * An attack is repeated no sooner than this, in ms: it is what it does that is to be measured, not how often it can be called.
 */
const REPEAT_MS = 50
/** An invocation that is ended for its CPU or its time may go on for so long after its limit, in ms. */
const KILL_GRACE_MS = 250
/** How late the event loop of a host may be, in ms: what it does for one function holds up all others. */
const MAX_LOOP_DELAY_MS = 50

/** The cases to run, by their ids between commas. Default: all of the form. */
const WANTED = process.env['CARPOOL_ISOLATION_CASES'] && new Set(process.env['CARPOOL_ISOLATION_CASES'].split(','))

/** Runs cases one after the other on a server of their own, and checks it all at the end. */
export async function runCases(t: Test, cases: readonly IsolationCase[], options: RigOptions = {}): Promise<void> {
  const wanted = wantedOf(cases)
  const rig = await startRig(t, { ...options, cases: wanted })
  await runCasesOn(t, rig, wanted)
  await checkRig(t, rig)
}

/** The same of several lists, each a test with its title. Of each of them the short form leaves out variants. */
export async function runLists(
  t: Test,
  lists: Readonly<Record<string, readonly IsolationCase[]>>,
  options: RigOptions = {},
): Promise<void> {
  const wanted = Object.entries(lists).map(([title, cases]) => [title, wantedOf(cases)] as const)
  const rig = await startRig(t, { ...options, cases: wanted.flatMap(([, cases]) => cases) })
  for (const [title, cases] of wanted) await t.test(title, (t) => runCasesOn(t, rig, cases))
  await checkRig(t, rig)
}

function wantedOf(cases: readonly IsolationCase[]): readonly IsolationCase[] {
  const leftOut = FORM.hasVariants ? new Set<string>() : variantsOf(cases)
  return cases.filter(({ id }) => (WANTED ? WANTED.has(id) : !leftOut.has(id)))
}

async function runCasesOn(t: Test, rig: Rig, cases: readonly IsolationCase[]): Promise<void> {
  for (const one of cases) {
    const title = `${one.id} ${one.title}: ${one.verdict}`
    if (one.skip === undefined) await t.test(title, (t) => runCase(t, rig, one))
    else {
      await t.test(title, { skip: one.skip }, () => {})
      keepRow({ id: one.id, group: one.group, title: one.title, verdict: 'skipped', answered: '', billed: '', note: one.skip })
    }
  }
}

async function runCase(t: Test, rig: Rig, one: IsolationCase): Promise<void> {
  const name = nameOf(one)
  if (one.refused !== undefined) return runRefusal(t, rig, one, name)
  const deployed = rig.there.has(name) ? undefined : await deploy(rig, name, one)
  if (deployed !== undefined && deployed.status !== 201)
    throw new Error(`${one.id} was refused at the deploy: ${JSON.stringify(deployed)}`)
  const context: CaseContext = {
    t,
    rig,
    name,
    call: (path = one.request?.path ?? '/', init = one.request ?? {}) => call(`${rig.server.url}/${name}${path}`, init),
  }
  await rig.alone?.refresh()
  const before = await lookAtHost(rig)
  const [answers, probe] = await beside(rig, () => attack(one, context))
  const growth = growthMb(before)
  const records = await untilRecorded(rig.server, name, one.billed === 'none' ? 0 : answers.length)
  if (!checkAnswers(t, one, answers)) await showLog(t, rig, name)
  checkBill(t, one, answers, records)
  await one.check?.(context, { answers, records, growthMb: growth })
  // The next call is answered once it is known what becomes of the host.
  if (one.mayPoison === true) await checkAgain(t, one, context)
  const verdict = one.mayPoison === true && (await isGivenUp(rig, before)) ? 'P' : one.verdict
  await checkHost(t, rig, verdict, before)
  if (one.mayPoison !== true) await checkAgain(t, one, context)
  await checkProbe(t, { verdict }, rig, probe)
  await checkLeaks(t, one, context, answers)
  keepRow({ ...rowOf({ ...one, verdict }, rig, probe, answers, records), ...(growth !== undefined && { growthMb: growth }) })
  if (one.leavesWork === true) await context.call(END_PATH, {})
  if (FORM.isFull) await checkTimes(t, one, rig, records)
}

async function deploy({ server, env: ofRig }: Rig, name: string, one: IsolationCase): Promise<Deployed> {
  const { files, limits } = one
  const env = { ...ofRig, SELF: `${server.url}/${name}/`, ...one.env }
  if (files !== undefined) {
    const flags = Object.entries({ 'memory-mb': limits?.memoryMb, 'cpu-ms': limits?.cpuMs, 'timeout-ms': limits?.wallMs })
    const given = flags.flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, String(value)]))
    return { status: 201, info: await server.deploy(name, files, ...given) }
  }
  return deployScript(server, name, { code: scriptOf(one), ...(limits !== undefined && { limits }), env })
}

/** A deploy that is refused: nobody feels it, nobody is billed, and the same name takes good code afterwards. */
async function runRefusal(t: Test, rig: Rig, one: IsolationCase, name: string): Promise<void> {
  await rig.alone?.refresh()
  const before = await lookAtHost(rig)
  const [deployed, probe] = await beside(rig, () => deploy(rig, name, one))
  const shownText = JSON.stringify(deployed)
  if (!('problem' in deployed)) t.fail(`it was deployed: ${shownText}`)
  else {
    const { status, code, detail } = one.refused ?? { status: 0, code: '' }
    t.equal(deployed.status, status, shownText)
    t.match(deployed.problem.code, code)
    if (detail !== undefined) t.match(deployed.problem.detail, detail)
  }
  t.strictSame(rig.canary.leaksIn(shownText), [], 'nothing of the host is to be seen')
  t.equal((await call(`${rig.server.url}/${name}/`)).status, 404, 'the name stands for nothing')
  t.strictSame(await recordsOf(rig.server, name), [], 'nobody is billed')
  await checkHost(t, rig, one.verdict, before)
  await checkProbe(t, one, rig, probe)
  if (FORM.isFull) {
    const good = await deployScript(rig.server, name, { code: scriptOf({}) })
    t.equal(good.status, 201, 'good code is taken afterwards')
  }
  const answered = 'problem' in deployed ? `${deployed.status} ${deployed.problem.code}` : '201'
  const p99 = {
    ...(rig.alone?.p99Ms !== undefined && { aloneP99Ms: rig.alone.p99Ms }),
    ...(probe.p99Ms !== undefined && { duringP99Ms: probe.p99Ms }),
  }
  keepRow({ id: one.id, group: one.group, title: one.title, verdict: one.verdict, billed: one.billed, answered, ...p99 })
}

/** Does something while the neighbour is called. */
async function beside<T>({ neighbour }: Rig, task: () => Promise<T>): Promise<[T, Probe]> {
  const watched = neighbour.watch(FORM.probesPerSecond)
  try {
    return [await task(), await watched.stop()]
  } finally {
    await watched.stop()
  }
}

async function attack(one: IsolationCase, context: CaseContext): Promise<Answer[]> {
  const once = async (): Promise<readonly Answer[]> =>
    one.attack === undefined ? [await context.call()] : (await one.attack(context)).answers
  const untilMs = performance.now() + FORM.attackMs
  const answers = [...(await once())]
  if (!(one.isRepeatable ?? one.verdict !== 'P')) return answers
  while (performance.now() < untilMs) {
    const [again] = await Promise.all([once(), pause(REPEAT_MS)])
    answers.push(...again)
  }
  return answers
}

const SHOWN_LINES = 10

/** What the function says to its failure, for whoever reads the report of the test. */
async function showLog(t: Test, { server }: Rig, name: string): Promise<void> {
  const lines = await readLog(server, name, SHOWN_LINES)
  for (const { msg } of lines) t.comment(msg.slice(0, 500))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** The next call works, and finds what it should of those before. */
async function checkAgain(t: Test, one: IsolationCase, context: CaseContext): Promise<void> {
  const { again = one.verdict === 'K' || one.verdict === 'P' ? 'fresh' : 'same' } = one
  if (again === 'skipped') return
  const next = await context.call(AGAIN_PATH, {})
  t.equal(next.status, 200, `the next call is answered: ${shown(next)}`)
  if (again === 'fresh') t.equal(next.text, 'seen 0', 'by a new isolate, which knows of no call before')
  else if (again === 'same') t.match(next.text, /^seen [1-9]\d*$/, 'by the isolate that was there')
}

async function checkProbe(
  t: Test,
  { verdict }: Pick<IsolationCase, 'verdict'>,
  rig: Rig,
  { calls, wrong, p99Ms }: Probe,
): Promise<void> {
  const { alone } = rig
  t.strictSame(wrong, [], `the neighbour was answered right, ${calls} times`)
  if (wrong.length > 0) await showLog(t, rig, NEIGHBOUR)
  if (alone?.p99Ms === undefined || p99Ms === undefined || verdict === 'P') return
  const mostMs = Math.max(P99_FACTOR * alone.p99Ms, alone.p99Ms + P99_SLACK_MS)
  t.ok(p99Ms <= mostMs, `its p99 was ${p99Ms.toFixed(1)} ms; alone it is ${alone.p99Ms.toFixed(1)} ms`)
}

/** Nothing of the host, and no secret, is in what was answered, logged or sent. */
async function checkLeaks(t: Test, one: IsolationCase, { rig, name }: CaseContext, answers: readonly Answer[]): Promise<void> {
  const lines = await readLog(rig.server, name)
  const texts = [
    ...answers.map(({ text, headers }) => `${text}\n${JSON.stringify([...headers])}`),
    ...lines.map(({ msg }) => msg),
    ...rig.upstream.seen.filter(({ headers }) => headers['x-case'] === one.id).map((seen) => JSON.stringify(seen)),
  ]
  const leaks = new Set(texts.flatMap((text) => rig.canary.leaksIn(text)).filter((leak) => one.mayShow?.test(leak) !== true))
  t.strictSame([...leaks], [], 'nothing of the host is to be seen')
  t.strictSame(rig.canary.touches, [], 'no canary was touched')
}

/** What only a machine that does nothing else can show. */
async function checkTimes(t: Test, one: IsolationCase, rig: Rig, records: readonly LedgerRow[]): Promise<void> {
  if (one.verdict === 'P') return
  const { loopDelayMs } = await rig.host()
  t.ok(loopDelayMs <= MAX_LOOP_DELAY_MS, `the event loop of the host was ${loopDelayMs} ms late`)
  const { wallMs } = one.limits ?? {}
  const late = records.filter(
    (record) => record['outcome'] === 'timeout' && wallMs !== undefined && execMs(record) > wallMs + KILL_GRACE_MS,
  )
  t.strictSame(late.map(execMs), [], `nobody ran for more than ${wallMs} ms and the grace`)
}
