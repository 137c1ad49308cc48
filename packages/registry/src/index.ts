export type { DisabledInfo } from './disabled-functions.ts'
export { openRegistry, type Registry } from './registry.ts'
export {
  functionNotFound,
  type PublishInput,
  type RegistryOptions,
  type RegistryProblem,
  type RouteChange,
} from './registry-types.ts'
export type { StagedRevision, StageInput } from './staging.ts'
