export { openRegistry, type Registry } from './registry.ts'
export type {
  PublishInput,
  RegistryOptions,
  RegistryProblem,
  RouteChange,
  StagedRevision,
  StageInput,
} from './registry-types.ts'
