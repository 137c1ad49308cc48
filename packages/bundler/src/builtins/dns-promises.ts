/** `node:dns/promises` in a function. */
import { promises } from './dns.ts'

export default promises
