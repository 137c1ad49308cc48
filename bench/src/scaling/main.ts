/** What the product claims of scaling, with real processes: who gets a host, who is refused, and who notices. */
import { runScenarios } from '../lib/run-scenarios.ts'
import { measureBurn } from './scenarios/burn.ts'
import { measureDeparted } from './scenarios/departed.ts'
import { measureFlood } from './scenarios/flood.ts'
import { measureMetrics } from './scenarios/metrics.ts'
import { measureOverload } from './scenarios/overload.ts'
import { measureScaleIn } from './scenarios/scale-in.ts'
import { measureShutdown } from './scenarios/shutdown.ts'
import { measureSleepers } from './scenarios/sleepers.ts'
import { measureUpstream } from './scenarios/upstream.ts'
import { measureUtilization } from './scenarios/utilization.ts'
import { measureWave } from './scenarios/wave.ts'

const SCENARIOS = {
  'sleepers': measureSleepers,
  'burn': measureBurn,
  'overload': measureOverload,
  'wave': measureWave,
  'upstream': measureUpstream,
  'flood': measureFlood,
  'utilization': measureUtilization,
  'departed': measureDeparted,
  'shutdown': measureShutdown,
  'scale-in': measureScaleIn,
  'metrics': measureMetrics,
}
/** They take minutes however they are cut. */
const LONG: ReadonlySet<string> = new Set(['wave'])

await runScenarios({ bench: 'scaling', title: 'Scaling', scenarios: SCENARIOS, long: LONG })
