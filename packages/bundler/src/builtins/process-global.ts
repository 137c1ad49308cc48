/** The free identifier `process` in a function, where more of it is used than `env`. A `var`, as in buffer-global.ts. */
import node from './process.ts'

// oxlint-disable-next-line no-var
export var process: typeof node = node
