import { dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'

export const SDK_NAME = '@carpool/sdk'

/** The SDK that came with this bundler; undefined if it was installed without one. */
export function sdkUrl(): string | undefined {
  try {
    return import.meta.resolve(SDK_NAME)
  } catch {
    return undefined
  }
}

/** The folder of that SDK's files. */
export function sdkFolder(): string | undefined {
  const url = sdkUrl()
  return url === undefined ? undefined : dirname(fileURLToPath(url)) + sep
}

/** Resolves the SDK from the author's own packages, else to the one that came with this bundler: it need not be installed. */
export const sdkFallback: Plugin = {
  name: 'sdk-fallback',
  setup(build) {
    build.onResolve({ filter: /^@carpool\/sdk$/ }, async ({ path, kind, resolveDir, importer, pluginData }) => {
      if (pluginData === sdkFallback) return undefined
      const own = await build.resolve(path, { kind, resolveDir, importer, pluginData: sdkFallback })
      if (own.errors.length === 0) return own
      const url = sdkUrl()
      return url === undefined ? undefined : { path: fileURLToPath(url), sideEffects: false }
    })
  },
}
