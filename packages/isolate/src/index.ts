export {
  Bootstrap,
  compileToCache,
  GuestIsolate,
  type Measured,
  type GuestCallback,
  type GuestCode,
  type GuestIsolateOptions,
  type IsolateListener,
  type Primitive,
  type Said,
} from './guest-isolate.ts'
