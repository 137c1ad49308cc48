/** Group C5 of the list of attacks: what functions reach, what they may send, what servers do to them, and raw sockets. */
import t from 'tap'
import { NETWORK_ADDRESS_CASES } from './cases/network-addresses.ts'
import { NETWORK_REQUEST_CASES } from './cases/network-requests.ts'
import { NETWORK_SERVER_CASES } from './cases/network-servers.ts'
import { NETWORK_SOCKET_CASES } from './cases/network-sockets.ts'
import { NETWORK_TLS_CASES } from './cases/network-tls.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('network', (t) =>
  runLists(t, {
    addresses: NETWORK_ADDRESS_CASES,
    servers: NETWORK_SERVER_CASES,
    requests: NETWORK_REQUEST_CASES,
    sockets: NETWORK_SOCKET_CASES,
    tls: NETWORK_TLS_CASES,
  }),
)
