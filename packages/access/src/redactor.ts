/** Takes the values of secrets out of a text. */
export type Redact = (text: string) => string

/** Shorter values are left in: they may stand in any text. In UTF-16 units. */
const MIN_LENGTH = 6
/** So much of a longer value must be there for it to count, and the rest of it goes as far as it is there. */
const HEAD_LENGTH = 256
/** Where a text was cut: before the marks of the console, of its inspection of values and of the log. */
const CUT_MARK = /['"]?… \(?\d+ more characters/g
const MULTIPLIER = 31
/** What the first unit of a window has been multiplied by when the window moves on. */
const FIRST_WEIGHT = Math.imul(Math.imul(MULTIPLIER ** 3, MULTIPLIER), MULTIPLIER)
const FILTER_MASK = 0xffff
/**
 * Comparisons for each unit of the text, and besides. A text that needs more looks all over like the beginnings of secrets; to
 * search it could take seconds, so it is withheld.
 */
const COMPARISONS_PER_UNIT = 0.5
const MIN_COMPARISONS = 500
/** To make a form and compare it takes about as long as one comparison for so many units of it. */
const UNITS_PER_COMPARISON = 64

interface Sought {
  readonly key: string
  readonly head: string
  /** Else only the beginning of the form is its head. */
  readonly isWhole: boolean
  /** Made when it is needed, and as far as that: all forms of large values take much memory. */
  readonly upTo: (units: number) => string
}

/**
 * Makes what replaces the values of secrets by `[secret KEY]`, in all of the forms below. The time that it takes goes by the
 * length of the text, not by the number of secrets: as Rabin and Karp do it, a hash of every window of six units is looked up.
 * Where a text was cut, six units of the beginning of a secret count as one.
 */
export function createRedactor(secrets: Iterable<readonly [key: string, value: string]>): Redact {
  const buckets = new Map<number, Sought[]>()
  const filter = new Uint8Array(FILTER_MASK + 1)
  const heads = new Set<string>()
  for (const sought of soughtFor(secrets)) {
    const { head, isWhole } = sought
    if (head.length < MIN_LENGTH || (isWhole && heads.has(head))) continue
    heads.add(head)
    const hash = hashOf(head, 0)
    filter[slotOf(hash)] = 1
    const bucket = buckets.get(hash)
    if (bucket === undefined) buckets.set(hash, [sought])
    else bucket.push(sought)
  }
  if (buckets.size === 0) return (text) => text
  return (text) => redact(text, buckets, filter)
}

function* soughtFor(secrets: Iterable<readonly [key: string, value: string]>): Generator<Sought> {
  for (const [key, value] of secrets) {
    if (value.length < MIN_LENGTH) continue
    const forms = isEscaped(value) ? [...SECRET_FORMS, ...ESCAPED_SECRET_FORMS] : SECRET_FORMS
    if (value.length <= HEAD_LENGTH) {
      for (const form of [...WHOLE_SECRET_FORMS, ...forms]) {
        const whole = form(value)
        yield { key, head: whole, isWhole: true, upTo: () => whole }
      }
    } else {
      const beginning = wellFormed(value.slice(0, HEAD_LENGTH))
      for (const form of forms) {
        const upTo = (units: number): string => form(wellFormed(value.slice(0, Math.max(HEAD_LENGTH, units))))
        yield { key, head: form(beginning), isWhole: false, upTo }
      }
    }
  }
}

/** Without half a surrogate pair at its end. */
function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.slice(0, -1)
}

function redact(text: string, buckets: ReadonlyMap<number, readonly Sought[]>, filter: Uint8Array): string {
  const last = text.length - MIN_LENGTH
  if (last < 0) return text
  let comparisons = MIN_COMPARISONS + text.length * COMPARISONS_PER_UNIT
  let redacted = ''
  let from = 0
  let hash = hashOf(text, 0)
  const ends = endsOf(text)
  let nextEnd = 0
  for (let at = 0; at <= last; ) {
    const bucket = filter[slotOf(hash)] === 1 ? buckets.get(hash) : undefined
    if (bucket !== undefined) {
      comparisons -= bucket.length
      while (ends[nextEnd]! < at + MIN_LENGTH) nextEnd++
      const { key, length, cost } = longestOf(bucket, text, { at, end: ends[nextEnd]! }, comparisons)
      comparisons -= cost
      if (comparisons < 0) return `[${text.length} characters withheld: they look like the beginnings of secrets]`
      if (length > 0) {
        redacted += `${text.slice(from, at)}[secret ${key}]`
        at += length
        from = at
        if (at <= last) hash = hashOf(text, at)
        continue
      }
    }
    if (at < last) hash = rolled(hash, text.charCodeAt(at), text.charCodeAt(at + MIN_LENGTH))
    at++
  }
  return from === 0 ? text : redacted + text.slice(from)
}

/**
 * The longest match there; values may begin alike. A length of 0: none.
 * @param end of the text, or where it was cut next: there the beginning of a head is enough
 * @param maxCost ends the search
 */
function longestOf(
  bucket: readonly Sought[],
  text: string,
  { at, end }: { readonly at: number; readonly end: number },
  maxCost: number,
): { key: string; length: number; cost: number } {
  const longest = { key: '', length: 0, cost: 0 }
  for (const { key, head, upTo } of bucket) {
    if (longest.cost > maxCost) break
    const isCut = end - at < head.length && head.startsWith(text.slice(at, end))
    if (!isCut && !text.startsWith(head, at)) continue
    const form = isCut ? text.slice(at, end) : upTo(text.length - at)
    longest.cost += form.length / UNITS_PER_COMPARISON
    const length = commonLength(text, at, form)
    if (length > longest.length) Object.assign(longest, { key, length })
  }
  return longest
}

/** In order; the last one is the end of the text. */
function endsOf(text: string): number[] {
  return [...Array.from(text.matchAll(CUT_MARK), ({ index }) => index), text.length]
}

function hashOf(text: string, start: number): number {
  let hash = 0
  for (let at = start; at < start + MIN_LENGTH; at++) hash = (Math.imul(hash, MULTIPLIER) + text.charCodeAt(at)) | 0
  return hash
}

function rolled(hash: number, leaving: number, coming: number): number {
  return (Math.imul(hash - Math.imul(leaving, FIRST_WEIGHT), MULTIPLIER) + coming) | 0
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 16)) & FILTER_MASK
}

/** How many units of the form stand in the text from there. */
function commonLength(text: string, start: number, form: string): number {
  let length = 0
  while (length < form.length && text.charCodeAt(start + length) === form.charCodeAt(length)) length++
  return length
}

/** Writes a value as it comes to stand in a log. */
type Form = (value: string) => string

/**
 * The forms in which a value comes to stand in a log: as it is; in hex; URL-encoded; in base64, also in the middle of a
 * longer text, such as the credentials of HTTP's Basic. What a function does to a value on purpose is not among them. The form of
 * the beginning of a value is the beginning of its form.
 */
const SECRET_FORMS: readonly Form[] = [
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
 * The same of values with quotes, backslashes or line breaks: within JSON, and within JSON that is a string of other JSON; both
 * also with plain double quotes, as `console.log` shows strings that are within something else. Of other values these forms are
 * the value itself.
 */
const ESCAPED_SECRET_FORMS: readonly Form[] = [
  escaped,
  (value) => withPlainQuotes(escaped(value)),
  (value) => escaped(escaped(value)),
  (value) => withPlainQuotes(escaped(escaped(value))),
]

/** Whether the value has escaped forms of its own. */
function isEscaped(value: string): boolean {
  return escaped(value).length !== value.length
}

/** Those that have an end of their own. */
const WHOLE_SECRET_FORMS: readonly Form[] = [
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
