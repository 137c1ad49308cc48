/** `node:fs/promises` in a function. */
import fs from './fs.ts'

const { promises } = fs as { promises: Record<string, unknown> }
export default promises
