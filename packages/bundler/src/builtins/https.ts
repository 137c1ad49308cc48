/** `node:https` in a function: as `node:http`, with the other scheme. */
import { clientOf } from './http.ts'

export default clientOf('https:')
