/** `node:buffer` in a function: unenv's, without the parts that need web globals which an isolate may lack. */
import { INSPECT_MAX_BYTES, SlowBuffer, kMaxLength } from 'unenv/node/internal/buffer/buffer'
import { Buffer } from './buffer-global.ts'

const constants = { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: 2 ** 29 - 24 }

export { Buffer, INSPECT_MAX_BYTES, SlowBuffer, constants, kMaxLength }
export default { Buffer, INSPECT_MAX_BYTES, SlowBuffer, constants, kMaxLength }
