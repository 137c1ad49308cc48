/**
 * Turns the source of a function that imports nothing into a bundle. @param label makes it code of its own, which shares no
 * code cache
 */
export function bundleOf(source: string, label: string): string {
  return `(() => { /* ${label} */ ${source.replace('export default', 'const handler =')}\nreturn { default: handler } })`
}
