export type { DisabledInfo } from './disabled-functions.ts'
export { openRegistry, type Registry } from './registry.ts'
export { functionNotFound } from './registry-errors.ts'
export type {
  PublishInput,
  RegistryOptions,
  RegistryProblem,
  RouteChange,
  StagedRevision,
  StageInput,
} from './registry-types.ts'
