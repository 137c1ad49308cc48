/** Lines are at most 130 columns wide. The formatter sees to the code of JavaScript; texts in it are as long as they are. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'

const COLUMNS = 130
const root = join(import.meta.dirname, '../..')
const SCRIPT = /\.(?:ts|mjs)$/
const WHOLE = /\.(?:cc|h|sh)$|^\.ci\/[^.]+$/
const COMMENT = /^\s*(?:\/\/|\/\*|\*)/

const FOLDERS = '{packages,host,sdk,examples,bench,test,pack}'
/** Not ours, or written by programs. */
const OTHERS = new Set(['node_modules', 'dist', 'results', '.tap', 'prebuilt'])
const files = [`${FOLDERS}/**/*.{ts,mjs,cc,h,sh}`, '*.{ts,mjs}', '.ci/*'].flatMap((pattern) =>
  globSync(pattern, { cwd: root, exclude: (path) => OTHERS.has(basename(path)) }),
)

/** A tab is as wide as what stands for it in the other files. */
function columnsOf(line: string): number {
  return Array.from(line.replaceAll('\t', '  ')).length
}

function tooWide(file: string, counts: (line: string) => boolean): string[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n')
  return lines.flatMap((line, index) => (counts(line) && columnsOf(line) > COLUMNS ? [`${file}:${index + 1}`] : []))
}

t.test('comments', async (t) => {
  const scripts = files.filter((file) => SCRIPT.test(file))
  t.ok(scripts.length > 500, `${scripts.length} files`)
  t.same(
    scripts.flatMap((file) => tooWide(file, (line) => COMMENT.test(line))),
    [],
  )
})

t.test('what no formatter sees to', async (t) => {
  const others = files.filter((file) => WHOLE.test(file))
  t.ok(others.length > 20, `${others.length} files`)
  t.same(
    others.flatMap((file) => tooWide(file, () => true)),
    [],
  )
})
