/** As the language makes text of a value. @throws TypeError for a symbol */
export function toText(value: unknown): string {
  // oxlint-disable-next-line typescript/no-unnecessary-template-expression -- the value need not be a string
  return `${value as string}`
}
