/** Group C5 of the list of attacks, fifth part: what the peer of a function may have TLS cost. */
import { createServer } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { forgedIdentity } from '../../../packages/egress/test/fixtures/forged-certificates.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { UPSTREAM_ADDRESS } from '../support-b/raw-upstream.ts'

const FETCHES = 40
/** As many as a peer may send: each costs 8 ms. */
const FORGED = 6

export const NETWORK_TLS_CASES: readonly IsolationCase[] = [
  {
    id: 'N17k',
    group: 'network',
    title: 'a server whose certificates have forged keys, the largest that there are',
    verdict: 'R',
    billed: 'full',
    handler: `
      const url = 'https://${UPSTREAM_ADDRESS}:' + new URL(request.url).searchParams.get('port') + '/';
      const fetched = await Promise.allSettled(Array.from({ length: ${FETCHES} }, () => fetch(url)));
      const outcomes = fetched.map(({ reason }) => String(reason?.message));
      const others = outcomes.filter((outcome) => !/The TLS connection|did not accept/.test(outcome));
      return new Response(others[0] ?? 'refused');`,
    expect: { status: 200, code: '', body: 'refused' },
    attack: async ({ t, call }) => {
      const server = createServer(forgedIdentity(FORGED), (socket) => void socket.on('error', () => socket.destroy()).end())
      server.on('tlsClientError', () => {})
      await new Promise<void>((resolve) => server.listen(0, UPSTREAM_ADDRESS, resolve))
      t.teardown(() => server.close())
      return { answers: [await call(`/?port=${(server.address() as AddressInfo).port}`)] }
    },
  },
]
