/** Structured clones. */
export { structuredClone } from '../web-api/structured-clone.ts'
