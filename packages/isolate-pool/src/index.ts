export { chooseEvicted, type EvictionCandidate } from './choose-evicted.ts'
export { IsolatePool, type IsolateLease, type IsolatePoolOptions, type Pooled } from './isolate-pool.ts'
export { Prewarmer, type MakeBlank } from './prewarmer.ts'
