import { promises as dns, type LookupAddress } from 'node:dns'
import { monotonicClock } from '@carpool/core'

interface PatientResolverOptions {
  /** How long each server is waited for at least, in ms. */
  readonly timeoutMs: number
  /** Default: those of the system. */
  readonly servers?: readonly string[] | undefined
}

const TRIES = 2

/**
 * Asks DNS servers, and waits for them as long as it is told. c-ares does so until a server has answered a few times; from then
 * on it waits five times as long as the answers took, be it 250 ms, and the answer that takes longer for once is lost. So what it
 * gave up too soon is asked again through a resolver that has seen no answers.
 */
export class PatientResolver {
  readonly #options: PatientResolverOptions
  readonly #usual: dns.Resolver
  #patient: dns.Resolver | undefined

  constructor(options: PatientResolverOptions) {
    this.#options = options
    this.#usual = newResolver(options, TRIES)
  }

  /** The addresses of one family. @throws Error with a code of `node:dns` */
  async resolve(name: string, family: 4 | 6): Promise<LookupAddress[]> {
    const beganMs = monotonicClock()
    try {
      return await addresses(this.#usual, name, family)
    } catch (cause) {
      const wasPatient = monotonicClock() - beganMs >= TRIES * this.#options.timeoutMs * this.#usual.getServers().length
      if ((cause as NodeJS.ErrnoException).code !== 'ETIMEOUT' || wasPatient) throw cause
    }
    const patient = (this.#patient ??= newResolver(this.#options, 1))
    try {
      return await addresses(patient, name, family)
    } finally {
      // It has seen an answer. Those who have asked it already have their time.
      if (this.#patient === patient) this.#patient = undefined
    }
  }
}

function newResolver({ timeoutMs, servers }: PatientResolverOptions, tries: number): dns.Resolver {
  const resolver = new dns.Resolver({ timeout: timeoutMs, tries })
  if (servers !== undefined) resolver.setServers(servers)
  return resolver
}

async function addresses(resolver: dns.Resolver, name: string, family: 4 | 6): Promise<LookupAddress[]> {
  const found = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name))
  return found.map((address) => ({ address, family }))
}
