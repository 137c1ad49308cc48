/** Libraries of the runtime, their native functions, and Node.js' modules: they end at limits, and give nothing away. */
import t from 'tap'
import { LIBRARY_CPU_CASES } from './cases/libraries-cpu.ts'
import { LIBRARY_ESCAPE_CASES } from './cases/libraries-escape.ts'
import { LIBRARY_MEMORY_CASES } from './cases/libraries-memory.ts'
import { checkRig, startRig } from './harness/rig.ts'
import { runCasesOn } from './harness/run-cases.ts'

// Many deploys, on a machine that may have much else to do.
t.setTimeout(300_000)

t.test('libraries', async (t) => {
  const rig = await startRig(t)
  await t.test('CPU', (t) => runCasesOn(t, rig, LIBRARY_CPU_CASES))
  await t.test('memory', (t) => runCasesOn(t, rig, LIBRARY_MEMORY_CASES))
  await t.test('escapes', (t) => runCasesOn(t, rig, LIBRARY_ESCAPE_CASES))
  await checkRig(t, rig)
})
