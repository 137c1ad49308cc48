/** What Node.js' own `tls` finds in place of parts of its. */
import { createSecureContext, SecureContext } from './secure-context.ts'
import { connect, createServer, Server, TLSSocket } from './tls-wrap.ts'

export const common = { createSecureContext, SecureContext }
export const wrap = { connect, createServer, Server, TLSSocket }
