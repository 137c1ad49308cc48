/** `node:timers` in a function: the globals, which give Timeout objects. */
import promises from './timers-promises.ts'

const { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis

export { clearImmediate, clearInterval, clearTimeout, promises, setImmediate, setInterval, setTimeout }
export default { clearImmediate, clearInterval, clearTimeout, promises, setImmediate, setInterval, setTimeout }
