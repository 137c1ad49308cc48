/** Group C8 of the list of attacks: what is measured is what was used, and nothing hides from the bill. */
import t from 'tap'
import { BILLING_HIDDEN_CASES } from './cases/billing-hidden.ts'
import { BILLING_CASES } from './cases/billing.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('billing', (t) => runLists(t, { measured: BILLING_CASES, 'hidden and forged': BILLING_HIDDEN_CASES }))
