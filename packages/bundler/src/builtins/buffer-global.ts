import buffer from 'node:buffer'

/**
 * The free identifier `Buffer` in a function. A `var`, and not a function passed on: CommonJS modules stand in another scope of
 * the bundle than this one, and only variables can be lifted.
 */
// oxlint-disable-next-line no-var
export var Buffer: typeof globalThis.Buffer = buffer.Buffer
