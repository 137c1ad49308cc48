/** What may stand in `Host`. Anything else could pass for a path, or for a user's name, in the function's URL. */
const FORM = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
/** A name without a label of Punycode whose last label is no number, or an IPv4 address as browsers write it. */
const PLAIN = new RegExp(
  `^(?:(?:(?!xn--)[\\w~-]+\\.)*(?!xn--)[a-z_][\\w~-]*\\.?|${OCTET}(?:\\.${OCTET}){3})(?::(?:\\d{1,4}|[1-5]\\d{4}))?$`,
  'i',
)

/**
 * Whether it is a name or an address, with or without a port, that makes a URL: `new URL('http://<it>/')` does not throw, so that
 * of a request does not throw in a function. Most of what clients send is known by its looks; the parser is asked about the rest.
 */
export function isHost(text: string): boolean {
  return PLAIN.test(text) || (FORM.test(text) && URL.canParse(`http://${text}/`))
}
