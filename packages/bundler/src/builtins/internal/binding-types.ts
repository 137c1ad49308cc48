/** The native part of `util.types`. */
import * as checks from '../type-checks.ts'

export default { ...checks }
