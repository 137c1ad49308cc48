/** `node:tls` in a function: Node.js' own module over sockets of the host, which speaks TLS; loaded when it is first used. */
import { lazily } from './internal/lazily.ts'

declare const require: (name: string) => object

const FUNCTIONS = [
  'checkServerIdentity',
  'connect',
  'convertALPNProtocols',
  'createSecureContext',
  'createServer',
  'getCACertificates',
  'getCertificateCompressionAlgorithms',
  'getCiphers',
  'rootCertificates',
  'SecureContext',
  'Server',
  'setDefaultCACertificates',
  'TLSSocket',
] as const

const CONSTANTS = {
  CLIENT_RENEG_LIMIT: 3,
  CLIENT_RENEG_WINDOW: 600,
  DEFAULT_CIPHERS:
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256:HIGH:!aNULL:!eNULL:!MD5:!RC4',
  DEFAULT_ECDH_CURVE: 'auto',
  DEFAULT_MAX_VERSION: 'TLSv1.3',
  DEFAULT_MIN_VERSION: 'TLSv1.2',
}

export default lazily(CONSTANTS, FUNCTIONS, () => require('carpool-node:own/tls'))
