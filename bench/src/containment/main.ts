/**
 * What the product claims of containment, with real processes: who harms a process, who loses by it, and what is left
 * afterwards.
 */
import { runScenarios } from '../lib/run-scenarios.ts'
import { measureHostLoss } from './scenarios/host-loss.ts'
import { measureKillers } from './scenarios/killers.ts'
import { measureRunaways } from './scenarios/runaways.ts'
import { measureSoak } from './scenarios/soak.ts'

const SCENARIOS = {
  'killers': measureKillers,
  'runaways': measureRunaways,
  'host-loss': measureHostLoss,
  'soak': measureSoak,
}

await runScenarios({ bench: 'containment', title: 'Containment', scenarios: SCENARIOS })
