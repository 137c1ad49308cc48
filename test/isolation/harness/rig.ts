import type { HostInfo } from '@carpool/core'
import type { Test } from 'tap'
import { startServer, until, type TestServer } from '../../support/server.ts'
import { measureAlone, type Alone } from './alone.ts'
import { setCanary, type Canary } from './canary.ts'
import { askControl } from './control.ts'
import { FORM } from './form.ts'
import type { IsolationCase } from './isolation-case.ts'
import { NEIGHBOUR, settleNeighbour, type Neighbour } from './neighbour.ts'
import { recordsOf } from './records.ts'
import { putThere } from './there.ts'
import { startUpstream, UPSTREAM_HOST, type Upstream } from './upstream.ts'

/** A server with a neighbour whom nothing may harm, and canaries that nobody may touch. */
export interface Rig {
  readonly server: TestServer
  readonly neighbour: Neighbour
  readonly canary: Canary
  readonly upstream: Upstream
  /** What functions are told: `UPSTREAM` and `CANARY`, URLs with a slash at the end. */
  readonly env: Readonly<Record<string, string>>
  /** The functions that the server found when it started. */
  readonly there: ReadonlySet<string>
  /** The neighbour while nothing else happens; undefined in the short form. */
  readonly alone: Alone | undefined
  /** The host that takes the invocations of all functions but those in quarantine. There is one, so that everybody shares it. */
  host(): Promise<HostInfo>
}

export interface RigOptions {
  /** Cases whose functions the server may find when it starts: see {@link putThere}. */
  readonly cases?: readonly IsolationCase[]
  /** Flags of the server besides those of the rig, which they win over. */
  readonly flags?: readonly string[]
  /** Answers of the upstream: see {@link startUpstream}. */
  readonly upstream?: Parameters<typeof startUpstream>[1]
}

/** Everybody shares one host, however busy. Where times are measured there is a standby, as there is by default. */
const HOST_FLAGS = ['--min-hosts', '1', '--max-hosts', '1', '--allow-egress', `${UPSTREAM_HOST}/32`]
const FLAGS = FORM.isFull ? [...HOST_FLAGS, '--standby-hosts', '1'] : HOST_FLAGS

/**
 * Starts it all. At the end of the test it is checked that no canary was touched and that the neighbour was billed for each of
 * its calls, once.
 */
export async function startRig(t: Test, { cases = [], flags = [], upstream: also }: RigOptions = {}): Promise<Rig> {
  const canary = await setCanary(t)
  const upstream = await startUpstream(t, withTurns(also))
  const env = { UPSTREAM: upstream.url, CANARY: `http://127.0.0.1:${canary.port}/` }
  const there = await putThere(canary.dataDir, cases, env)
  const server = await startServer(t, [...FLAGS, ...flags], canary.dataDir)
  const neighbour = await settleNeighbour(t, server, canary.secret)
  const alone = await measureAlone(neighbour)
  return { server, neighbour, canary, upstream, env, there, alone, host: () => untilReady(server) }
}

/** The end of a rig: what must be right of all of it. Ends the server. */
export async function checkRig(t: Test, { server, neighbour, canary }: Rig): Promise<void> {
  const rows = await recordsOf(server, NEIGHBOUR)
  t.equal(rows.length, neighbour.calls(), 'each call of the neighbour has a record')
  t.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'and one only')
  t.strictSame(
    rows.filter(({ outcome }) => outcome !== 'ok'),
    [],
    'all of its calls were answered',
  )
  const response = await askControl(server, `/v1/functions/${NEIGHBOUR}`)
  t.match(await response.json(), { state: 'active' }, 'nobody takes it for what others did')
  const { code, stderr } = await server.stop()
  t.equal(code, 0, 'the server ends as it should')
  t.notMatch(stderr, canary.secret)
  t.strictSame(canary.touches, [], 'no canary was touched')
}

async function untilReady(server: TestServer): Promise<HostInfo> {
  return until(async () =>
    (await server.info()).hosts.find(
      ({ state, quarantineOf }) => (state === 'ready' || state === 'saturated') && quarantineOf === undefined,
    ),
  )
}

/** Besides, `/turn/<name>` says how often it was asked for: a module scope can tell by it where it runs. */
function withTurns(also: RigOptions['upstream']): RigOptions['upstream'] {
  const turns = new Map<string, number>()
  return (request, response) => {
    const [, name] = /^\/turn\/([\w-]+)/.exec(request.url ?? '') ?? []
    if (name === undefined) return also?.(request, response) ?? false
    const turn = (turns.get(name) ?? 0) + 1
    turns.set(name, turn)
    response.end(String(turn))
    return true
  }
}
