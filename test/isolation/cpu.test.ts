/**
 * CPU: whoever burns more than its limit is ended, also in built-ins and in code that the runtime would call, and nobody else
 * is held up. Then depth, many at once, and code that is hostile before it is called.
 */
import t from 'tap'
import { CPU_DEPLOY_CASES } from './cases/cpu-deploy.ts'
import { CPU_BUILTIN_CASES, CPU_CASES } from './cases/cpu.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('CPU', (t) => runLists(t, { limits: [...CPU_CASES, ...CPU_BUILTIN_CASES], 'depth and deploys': CPU_DEPLOY_CASES }))
