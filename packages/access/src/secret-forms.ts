/** Writes a value as it comes to stand in a log. */
type Form = (value: string) => string

/**
 * The forms in which a value comes to stand in a log: as it is; in hex; URL-encoded; in base64, also in the middle of a
 * longer text, such as the credentials of HTTP's Basic. What a function does to a value on purpose is not among them. The form of the
 * beginning of a value is the beginning of its form.
 */
export const SECRET_FORMS: readonly Form[] = [
  (value) => value,
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

/**
 * The same of values with quotes, backslashes or line breaks: within JSON, and within JSON that is a string of other JSON; both also with plain
 * double quotes, as `console.log` shows strings that are within something else. Of other values these forms are the value itself.
 */
export const ESCAPED_SECRET_FORMS: readonly Form[] = [
  escaped,
  (value) => withPlainQuotes(escaped(value)),
  (value) => escaped(escaped(value)),
  (value) => withPlainQuotes(escaped(escaped(value))),
]

/** Whether the value has escaped forms of its own. */
export function isEscaped(value: string): boolean {
  return escaped(value).length !== value.length
}

/** Those that have an end of their own. */
export const WHOLE_SECRET_FORMS: readonly Form[] = [
  (value) => Buffer.from(value).toString('base64'),
  (value) => Buffer.from(value).toString('base64url'),
]

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function withPlainQuotes(text: string): string {
  return text.replaceAll('\\"', '"')
}

/** How a value stands in the base64 of a longer text, but for the digits at its ends that depend on what is around it. */
function base64Within(value: string, bytesBefore: number): string {
  const bytes = Buffer.concat([Buffer.alloc(bytesBefore), Buffer.from(value)])
  // A digit has 6 bits.
  return bytes.toString('base64').slice(Math.ceil((bytesBefore * 8) / 6), Math.floor((bytes.length * 8) / 6))
}
