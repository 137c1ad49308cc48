export {
  climb,
  KILL_POLICY,
  RUNGS,
  type Evidence,
  type HostEvidence,
  type KillPolicy,
  type Reason,
  type Rung,
  type Step,
} from './kill-ladder.ts'
export { isDueForRecycling, type RecyclingPolicy } from './recycling.ts'
export { standingOf, Strikes, type Blame, type Standing, type Strike, type StrikePolicy } from './strikes.ts'
export { isCrash, suspectsOf, type ProcessEnd } from './suspects.ts'
