export {
  ENTROPY_BYTES,
  NO_INVOCATION,
  type BodyKind,
  type GuestBridge,
  type GuestEntries,
  type GuestFailure,
  type GuestOptions,
  type InvokeHead,
  type LoadReport,
} from './bridge.ts'
export { bundleRuntime } from './bundle.ts'
