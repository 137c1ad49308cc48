/** The marks in the texts: what stands between two of them is generated. */

/** One pair of marks in a text. */
export interface Mark {
  /** `claim`: a figure; `measured`: where and when those of the same section were measured. */
  readonly kind: 'claim' | 'measured'
  /** Of the claim; empty for `measured`. */
  readonly name: string
  /** What stands between. */
  readonly content: string
  /** Place of the content in the text. */
  readonly start: number
  readonly end: number
}

/** Those in code spans are about marks. */
const OPENING = /(?<!`)<!-- (claim|measured)(?: (\S+))? -->/g

/** @param file for the messages @throws SyntaxError if a mark is not closed, or has no name */
export function findMarks(text: string, file: string): Mark[] {
  return [...text.matchAll(OPENING)].map((match) => {
    const [opening, kind = '', name = ''] = match
    const start = match.index + opening.length
    const end = text.indexOf(`<!-- /${kind} -->`, start)
    const content = text.slice(start, end)
    const where = `${file}:${text.slice(0, match.index).split('\n').length}`
    if (end === -1 || content.includes(`<!-- ${kind}`)) throw new SyntaxError(`${where}: ${opening} is not closed.`)
    if ((kind === 'claim') !== (name !== '')) throw new SyntaxError(`${where}: a claim has a name, and nothing else has.`)
    return { kind: kind as Mark['kind'], name, content, start, end }
  })
}

/** The text with other contents between its marks. @param contentOf undefined leaves what is there */
export function replaceMarks(text: string, file: string, contentOf: (mark: Mark) => string | undefined): string {
  // From the end, so that the places stay right.
  return findMarks(text, file).reduceRight((changed, mark) => {
    const content = contentOf(mark) ?? mark.content
    return changed.slice(0, mark.start) + content + changed.slice(mark.end)
  }, text)
}

/** The claims with a mark in the same section: from the heading before to the next one. */
export function claimsOfSection(text: string, marks: readonly Mark[], at: Mark): string[] {
  const headings = [...text.matchAll(/^#{1,6} .*$/gm)].map(({ index }) => index)
  const from = headings.findLast((index) => index < at.start) ?? 0
  const to = headings.find((index) => index > at.start) ?? text.length
  return marks.filter(({ kind, start }) => kind === 'claim' && start > from && start < to).map(({ name }) => name)
}
