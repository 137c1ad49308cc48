import { CarpoolError, type ScalingDecisionInfo } from '@carpool/core'
import t from 'tap'
import { problemOf, startControlPlane } from './support/control-plane.ts'

t.test('a server is ready in one state alone, and says why not in the others', async (t) => {
  const { url, state } = await startControlPlane(t)
  const ready = await fetch(`${url}/readyz`)
  t.equal(ready.status, 200)
  t.notOk(ready.headers.has('retry-after'))
  // Whoever asks without a token is not told of files of the machine.
  const sandbox = { on: 12, total: 13, off: [{ layers: ['user'], remedy: 'Run the server as root.' }] }
  t.strictSame(await ready.json(), { status: 'ready', reasons: [], sandbox })
  for (const one of ['starting', 'saturated', 'draining', 'not-ready'] as const) {
    state.status = { ...state.status, state: one, reasons: ['Because.'] }
    const response = await fetch(`${url}/readyz`)
    t.equal(response.status, 503, one)
    t.match(response.headers.get('retry-after'), one === 'saturated' ? /^[12]$/ : /^1$/)
    t.strictSame(await response.json(), { status: one, reasons: ['Because.'], sandbox })
    t.equal((await fetch(`${url}/healthz`)).status, 200, 'it is alive all the same')
  }
})

t.test('the status is for those who have the token', async (t) => {
  const { url, send, state } = await startControlPlane(t)
  t.equal((await fetch(`${url}/v1/status`)).status, 401)
  t.strictSame(await (await send('/v1/status')).json(), state.status)
})

t.test('of the decisions the newest 20 are told', async (t) => {
  const { send, state } = await startControlPlane(t)
  const decision = { action: 'grow', reason: 'saturated', hostsBefore: 1, hostsAfter: 2, figures: {} }
  const decisions = Array.from({ length: 30 }, (_, index): ScalingDecisionInfo => ({ at: String(index), ...decision }))
  state.status = { ...state.status, decisions }
  t.strictSame(((await (await send('/v1/status')).json()) as typeof state.status).decisions, decisions.slice(0, 20))
})

t.test('a refusal that may pass says when to come back', async (t) => {
  const refusals = [
    new CarpoolError('too-many-requests', '5 of 5.'),
    new CarpoolError('saturated', 'Full.'),
    new CarpoolError('not-found', 'No.'),
  ]
  const { post } = await startControlPlane(t, (call) => call.end(refusals.shift()))
  await post('/v1/functions/f/revisions', { code: 'code', sourceMap: '{}' })
  const invoke = () => post('/v1/functions/f/invocations', { method: 'GET', path: '/', headers: [], bodyBase64: '' })
  const limited = await invoke()
  t.equal(limited.headers.get('retry-after'), '1')
  t.match(await problemOf(limited), { status: 429, code: 'too-many-requests' })
  const saturated = await invoke()
  t.match(saturated.headers.get('retry-after'), /^[12]$/)
  t.match(await problemOf(saturated), { status: 503, code: 'saturated' })
  t.notOk((await invoke()).headers.has('retry-after'))
})
