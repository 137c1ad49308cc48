import type { LedgerRow } from '../../support/ledger.ts'
import { askControl } from '../harness/control.ts'
import type { CaseContext } from '../harness/isolation-case.ts'
import { untilRecorded } from '../harness/records.ts'
import type { TestServer } from '../../support/server.ts'
import type { UsageRow } from '@carpool/core'

/** Module scope with `burn(turns)`, which takes CPU time in proportion: the clock of a function stands still while it runs. */
export const BURN = `
  function burn(turns) { let work = 0; for (let turn = turns; turn > 0; turn--) work = (work * 31 + turn) | 0; globalThis.work = work }
  const turnsOf = (request) => Number(new URL(request.url).searchParams.get('turns'));`

/** Turns of `burn` that take some ms of CPU. */
export const TURNS = 2_000_000

/** CPU time in a record, in µs. */
export function cpuUs({ cpu_us }: LedgerRow): number {
  return Number(cpu_us)
}

/** Calls with so many turns each, one after the other, and reads the records of just these. */
export async function burnAlone({ rig, name, call }: CaseContext, turns: readonly number[]): Promise<LedgerRow[]> {
  const ids: string[] = []
  for (const one of turns) ids.push((await call(`/?turns=${one}`)).id)
  const rows = await untilRecorded(rig.server, name, ids.length)
  return ids.flatMap((id) => rows.filter((row) => row['id'] === id))
}

/** What a function used in all, as the control plane tells; undefined if it used nothing. */
export async function usageOf(server: TestServer, functionName: string): Promise<UsageRow | undefined> {
  const response = await askControl(server, `/v1/usage?by=function&function=${functionName}`)
  const { rows } = (await response.json()) as { rows: UsageRow[] }
  return rows.find(({ key }) => key === functionName)
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
