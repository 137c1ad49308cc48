/** `node:tty` in a function: nothing is a terminal. */
import { refuse } from './refuse.ts'

const isatty = (): boolean => false
const { ReadStream, WriteStream } = refuse('tty', 'it has no terminal', ['ReadStream', 'WriteStream'])

export { isatty, ReadStream, WriteStream }
export default { isatty, ReadStream, WriteStream }
