import { learnKeyObject } from './internal/keys.ts'
import { nodeModuleOf } from './runtime-module.ts'

const crypto = nodeModuleOf('crypto')
learnKeyObject((crypto as { readonly KeyObject: Parameters<typeof learnKeyObject>[0] }).KeyObject)

/** `node:crypto` in a function. What is missing of it throws where it is used. */
export default crypto
