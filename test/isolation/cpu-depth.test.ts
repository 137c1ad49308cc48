/** CPU: depth, many at once, and code that is hostile before it is called. */
import t from 'tap'
import { CPU_DEPLOY_CASES } from './cases/cpu-deploy.ts'
import { runCases } from './harness/run-cases.ts'

t.test('CPU, depth and deploys', (t) => runCases(t, CPU_DEPLOY_CASES))
