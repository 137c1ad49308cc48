/**
 * As in Node.js since 0.11: the texts of its own modules, by their names. It warns only if asked to (`--pending-deprecation`).
 */
type Binding = (name: 'natives') => Readonly<Record<string, string>>

let texts: Readonly<Record<string, string>> | undefined

/**
 * The text of a module of Node.js' own, as the Node.js that runs this has it; undefined if it has none of that name. So a
 * function runs the very code that its author's tests run, and it is mended when Node.js is.
 */
export function nodeSource(name: string): string | undefined {
  // oxlint-disable-next-line typescript/no-deprecated -- nothing else gives them
  texts ??= (process as unknown as { binding: Binding }).binding('natives')
  return Object.hasOwn(texts, name) ? texts[name] : undefined
}
