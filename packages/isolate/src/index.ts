export {
  Bootstrap,
  compileToCache,
  GuestIsolate,
  type CpuReading,
  type Measured,
  type GuestCallback,
  type GuestCode,
  type GuestIsolateOptions,
  type Primitive,
} from './guest-isolate.ts'
