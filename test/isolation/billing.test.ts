/** Group C8 of the list of attacks: what is measured is what was used, and nothing hides from the bill. */
import t from 'tap'
import { BILLING_HIDDEN_CASES } from './cases/billing-hidden.ts'
import { BILLING_CASES } from './cases/billing.ts'
import { runLists } from './harness/run-cases.ts'

// Many cases, on a machine that may have much else to do.
t.setTimeout(600_000)

t.test('billing', (t) => runLists(t, { measured: BILLING_CASES, 'hidden and forged': BILLING_HIDDEN_CASES }))
