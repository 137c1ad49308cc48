import { Buffer } from '../buffer-global.ts'
import { refuse } from '../refuse.ts'
import { nodeModuleOf } from '../runtime-module.ts'

type Pem = string | Uint8Array | ReadonlyArray<string | Uint8Array>

/** Of the options of `node:tls`, what a connection is made with; the rest, as versions and ciphers, is the host's own. */
export interface ContextOptions {
  readonly ca?: Pem
  readonly cert?: Pem
  readonly key?: Pem | ReadonlyArray<{ readonly pem: string | Uint8Array; readonly passphrase?: string }>
  readonly passphrase?: string
  readonly pfx?: unknown
  readonly [name: string]: unknown
}

/** Certificates and keys in PEM form, for connections. */
export class SecureContext {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly context = this

  constructor(options: ContextOptions = {}) {
    if (options.pfx !== undefined && options.pfx !== null) {
      refuse('tls', 'it takes certificates and keys in PEM form', ['createSecureContext with pfx'])[
        'createSecureContext with pfx'
      ]!()
    }
    this.ca = pemOf(options.ca)
    this.cert = pemOf(options.cert)
    this.key = decrypted(...keyOf(options))
  }
}

export function createSecureContext(options?: ContextOptions): SecureContext {
  return new SecureContext(options)
}

function keyOf({ key, passphrase }: ContextOptions): readonly [key: string | undefined, passphrase: string | undefined] {
  const first: unknown = Array.isArray(key) ? key[0] : key
  if (typeof first === 'object' && first !== null && 'pem' in first) {
    const one = first as { readonly pem: string | Uint8Array; readonly passphrase?: string }
    return [pemOf(one.pem), one.passphrase ?? passphrase]
  }
  return [pemOf(key as Pem | undefined), passphrase]
}

interface Crypto {
  createPrivateKey(input: { readonly key: string; readonly passphrase: string }): {
    export(options: { readonly type: 'pkcs8'; readonly format: 'pem' }): string
  }
}

/** Whoever encrypted the key chose how much work that is: it is the function's own, and the host takes none that is encrypted. */
function decrypted(key: string | undefined, passphrase: string | undefined): string | undefined {
  if (key === undefined || passphrase === undefined || !/^-----BEGIN ENCRYPTED|^Proc-Type:.*ENCRYPTED/m.test(key)) return key
  const { createPrivateKey } = nodeModuleOf('crypto') as Crypto
  return createPrivateKey({ key, passphrase }).export({ type: 'pkcs8', format: 'pem' })
}

function pemOf(given: Pem | undefined | null): string | undefined {
  if (given === undefined || given === null || given === '') return undefined
  const list = Array.isArray(given) ? given : [given]
  return list.map((one: string | Uint8Array) => (typeof one === 'string' ? one : Buffer.from(one).toString('latin1'))).join('\n')
}
