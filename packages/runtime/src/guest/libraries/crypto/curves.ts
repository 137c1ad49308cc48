/** A curve whose keys are of the kind `ec`. */
export interface Curve {
  /** OpenSSL's and Node's name. */
  readonly name: string
  /** The name in a JWK, and in `crypto.subtle` where that has it. */
  readonly jwk: string
  readonly oid: string
  /** Of a coordinate and of the private number, in bytes. */
  readonly size: number
}

export const CURVES: readonly Curve[] = [
  { name: 'prime256v1', jwk: 'P-256', oid: '2a8648ce3d030107', size: 32 },
  { name: 'secp384r1', jwk: 'P-384', oid: '2b81040022', size: 48 },
  { name: 'secp521r1', jwk: 'P-521', oid: '2b81040023', size: 66 },
  { name: 'secp256k1', jwk: 'secp256k1', oid: '2b8104000a', size: 32 },
  { name: 'secp224r1', jwk: 'P-224', oid: '2b81040021', size: 28 },
]

/** By any of its names. */
export function curveNamed(name: unknown): Curve | undefined {
  if (name === 'secp256r1') return CURVES[0]
  return CURVES.find((curve) => curve.name === name || curve.jwk === name)
}

/** A curve whose keys are of a kind of their own. */
export interface OwnCurve {
  readonly kind: 'ed25519' | 'ed448' | 'x25519' | 'x448'
  /** OpenSSL's name. */
  readonly name: string
  readonly jwk: string
  readonly oid: string
  /** Of either half of a key, in bytes. */
  readonly size: number
}

export const OWN_CURVES: readonly OwnCurve[] = [
  { kind: 'ed25519', name: 'ED25519', jwk: 'Ed25519', oid: '2b6570', size: 32 },
  { kind: 'ed448', name: 'ED448', jwk: 'Ed448', oid: '2b6571', size: 57 },
  { kind: 'x25519', name: 'X25519', jwk: 'X25519', oid: '2b656e', size: 32 },
  { kind: 'x448', name: 'X448', jwk: 'X448', oid: '2b656f', size: 56 },
]

export function ownCurveNamed(jwk: unknown): OwnCurve | undefined {
  return OWN_CURVES.find((curve) => curve.jwk === jwk)
}
