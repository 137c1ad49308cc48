import { nodeModuleOf } from './runtime-module.ts'

/** `node:crypto` in a function. What is missing of it throws where it is used. */
export default nodeModuleOf('crypto')
