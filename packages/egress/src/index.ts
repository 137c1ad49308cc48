export { parseRange } from './address-policy.ts'
export {
  Egress,
  type EgressOptions,
  type EgressSocket,
  type EgressStream,
  type FetchEvents,
  type SocketEvents,
} from './egress.ts'
export type { FetchEnd } from './failure.ts'
export { checkHostList } from './host-list.ts'
export type { EgressLimits } from './limits.ts'
export type { EgressReading, EgressRequest, EgressResult, SocketRequest, StreamPart, StreamSide } from './messages.ts'
