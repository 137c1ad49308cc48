export { Fleet, type FleetListener, type FleetOptions, type FleetPolicy } from './fleet.ts'
export { Machine } from './machine.ts'
export type { CallListener } from './placement/placement.ts'
export type { HostProgram } from './pool/os-process.ts'
