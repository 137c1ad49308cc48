import * as checks from './type-checks.ts'

/** `node:util/types` in a function: each check by its name, and all of them as the default export. */
export * from './type-checks.ts'
export default { ...checks }
