/** Group C6 of the list of attacks, second and third part: the control plane, files, secrets and code caches. */
import t from 'tap'
import { GATEWAY_CONTROL_CASES } from './cases/gateway-control.ts'
import { GATEWAY_FILE_CASES, GATEWAY_OPENED_CASES } from './cases/gateway-files.ts'
import { FORM } from './harness/form.ts'
import { runCases, runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('gateway', (t) => runLists(t, { 'control plane': GATEWAY_CONTROL_CASES, 'files and secrets': GATEWAY_FILE_CASES }))
t.test('gateway: loopback is open', (t) => runCases(t, GATEWAY_OPENED_CASES, { flags: ['--allow-egress', '127.0.0.1/32'] }))
