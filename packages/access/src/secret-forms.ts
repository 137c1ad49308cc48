/** Writes a value as it comes to stand in a log. */
type Form = (value: string) => string

/**
 * The forms in which a value comes to stand in a log: as it is and within JSON; in hex; URL-encoded; in base64, also in the middle of a
 * longer text, such as the credentials of HTTP's Basic. What a function does to a value on purpose is not among them. The form of the
 * beginning of a value is the beginning of its form.
 */
export const SECRET_FORMS: readonly Form[] = [
  (value) => value,
  (value) => JSON.stringify(value).slice(1, -1),
  (value) => Buffer.from(value).toString('hex'),
  (value) => Buffer.from(value).toString('hex').toUpperCase(),
  encodeURIComponent,
  (value) => encodeURIComponent(value).replaceAll(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase()),
  (value) => new URLSearchParams([['', value]]).toString().slice('='.length),
  ...[0, 1, 2].flatMap((bytesBefore): Form[] => [
    (value) => base64Within(value, bytesBefore),
    (value) => base64Within(value, bytesBefore).replaceAll('+', '-').replaceAll('/', '_'),
  ]),
]

/** Those that have an end of their own. */
export const WHOLE_SECRET_FORMS: readonly Form[] = [
  (value) => Buffer.from(value).toString('base64'),
  (value) => Buffer.from(value).toString('base64url'),
]

/** How a value stands in the base64 of a longer text, but for the digits at its ends that depend on what is around it. */
function base64Within(value: string, bytesBefore: number): string {
  const bytes = Buffer.concat([Buffer.alloc(bytesBefore), Buffer.from(value)])
  // A digit has 6 bits.
  return bytes.toString('base64').slice(Math.ceil((bytesBefore * 8) / 6), Math.floor((bytes.length * 8) / 6))
}
