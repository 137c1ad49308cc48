import { transform } from 'esbuild'

interface MappedScript {
  readonly code: string
  /** Source map v3 as JSON text. */
  readonly sourceMap: string
}

interface SourceMap {
  readonly sources: readonly string[]
}

/**
 * Leaves white space and comments out of a script, and writes what is not ASCII as escapes, but for regular expressions and
 * tagged templates. Every isolate of the function holds the script and copies it when it starts: a quarter of it is white space,
 * and one character beyond Latin-1 makes V8 store two bytes for each.
 */
export async function compactScript({ code, sourceMap }: MappedScript): Promise<MappedScript> {
  const given = JSON.parse(sourceMap) as SourceMap
  // By number: esbuild takes names for URLs, and would write `ü b.mjs` as `%C3%BC%20b.mjs`.
  const numbered = JSON.stringify({ ...given, sources: given.sources.map((_, index) => String(index)) })
  const inlined = `//# sourceMappingURL=data:application/json;base64,${Buffer.from(numbered).toString('base64')}`
  const { code: compact, map } = await transform(`${code}\n${inlined}`, {
    minifyWhitespace: true,
    charset: 'ascii',
    legalComments: 'none',
    sourcemap: 'external',
    sourcesContent: true,
    target: 'esnext',
    logLevel: 'silent',
    tsconfigRaw: {},
  })
  const made = JSON.parse(map) as SourceMap
  const sources = made.sources.map((source) => given.sources[Number(source)] ?? source)
  return { code: compact, sourceMap: JSON.stringify({ ...made, sources }) }
}
