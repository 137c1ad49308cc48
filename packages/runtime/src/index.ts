export {
  BODY_KINDS,
  ENTRIES,
  ENTROPY_BYTES,
  LOG_LEVELS,
  NO_INVOCATION,
  SAYS,
  type BodyKind,
  type GuestBridge,
  type GuestEntries,
  type GuestFailure,
  type GuestOptions,
  type InvokeHead,
  type LoadReport,
  splitScripts,
} from './bridge.ts'
export { bundleRuntime } from './bundle.ts'
