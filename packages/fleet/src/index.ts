export { chooseHost, type HostLoad } from './choose-host.ts'
export { Fleet, type FleetOptions, type Slot, type TryOut } from './fleet.ts'
export type { HostProcess, HostProgram, RevisionCode } from './host-process.ts'
export { HEALTHY_AFTER_MS, respawnDelayMs } from './respawn-delay.ts'
