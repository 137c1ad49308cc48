/** WebAssembly. It is loaded before user code runs, as limits depend on it. */
export { guestWebAssembly } from '../web-assembly/namespace.ts'
