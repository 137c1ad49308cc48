export {
  Bootstrap,
  compileToCache,
  GuestIsolate,
  type CpuReading,
  type GuestCallback,
  type GuestCode,
  type GuestIsolateOptions,
  type Primitive,
} from './guest-isolate.ts'
