import fc from 'fast-check'

/** Any code point, as fast-check's `unit: 'binary'` is, which lists a million of them before it gives the first. */
export const ANY_UNIT: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10_ffff }).map((point) => String.fromCodePoint(point))
