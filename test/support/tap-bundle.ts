import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { ROOT } from './command.ts'

/** Where preload.cjs has test files look for tap. Frames of stacks in a folder of that name are left out of reports. */
const BUNDLE = join(ROOT, 'node_modules/.carpool-tap/node_modules/@tapjs/core/tap.mjs')
/** Some of it is CommonJS, and requires modules of Node.js. */
const WITH_REQUIRE = `import { createRequire as createRequireOfTap } from 'node:module'; const require = createRequireOfTap(import.meta.url)`

/** Makes one file of tap and all that it imports: a test file loads it in half the time of near 300. */
export async function bundleTap(): Promise<void> {
  mkdirSync(dirname(BUNDLE), { recursive: true })
  await build({
    entryPoints: [fileURLToPath(import.meta.resolve('tap'))],
    outfile: BUNDLE,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    banner: { js: WITH_REQUIRE },
    logLevel: 'error',
  })
}
