import type { Test } from 'tap'
import { FORM } from '../harness/form.ts'
import type { Billed, Group, Verdict } from '../harness/isolation-case.ts'
import { keepRow } from '../harness/table.ts'
import { variantsOf } from '../harness/variants.ts'

/** A case that is about a server rather than about a function of it, so that it has a server, or several, of its own. */
export interface Scenario {
  readonly id: string
  readonly group: Group
  /** As in a case: what is done, for the table. */
  readonly title: string
  readonly verdict: Verdict
  readonly billed: Billed
  /** Why it does not run here, as a sentence. */
  readonly skip?: string
  /** @returns what was answered, for the table */
  readonly run: (t: Test) => Promise<string>
}

/** Runs scenarios one after the other, without variants in the short form, and keeps their rows of the table. */
export async function runScenarios(t: Test, scenarios: readonly Scenario[]): Promise<void> {
  const leftOut = FORM.hasVariants ? new Set<string>() : variantsOf(scenarios)
  for (const { run, skip, ...about } of scenarios) {
    if (leftOut.has(about.id)) continue
    const title = `${about.id} ${about.title}: ${about.verdict}`
    if (skip === undefined) {
      await t.test(title, async (t) => {
        const answered = await run(t)
        keepRow({ ...about, answered })
      })
    } else {
      await t.test(title, { skip }, () => {})
      keepRow({ ...about, verdict: 'skipped', answered: '', billed: '', note: skip })
    }
  }
}
