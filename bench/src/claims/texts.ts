import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { repositoryPath } from '../lib/repository.ts'
import { CLAIMS } from './claims.ts'
import { CODE_CLAIMS, missingAttacks } from './code-claims.ts'
import { claimsOfSection, findMarks, replaceMarks, type Mark } from './marks.ts'
import { provenanceLine, type StoredClaims } from './stored.ts'

/** Every text that may state a figure. */
const TEXTS = ['README.md', 'SECURITY.md', 'ARCHITECTURE.md', 'bench/README.md', 'docs/*.md', 'packages/*/README.md']

interface Text {
  /** From the root of the repository. */
  readonly file: string
  readonly text: string
}

export function readTexts(): Text[] {
  const cwd = repositoryPath('')
  const files = TEXTS.flatMap((pattern) => globSync(pattern, { cwd })).toSorted()
  return files.map((file) => ({ file, text: readFileSync(repositoryPath(file), 'utf8') }))
}

/** Writes what is stored, and what the code says, into the texts. @returns the files that changed */
export function writeTexts(stored: StoredClaims): string[] {
  return readTexts().flatMap(({ file, text }) => {
    const changed = replaceMarks(text, file, contentsFor(text, file, stored))
    if (changed === text) return []
    writeFileSync(repositoryPath(file), changed)
    return [file]
  })
}

/** Says where the texts do not match the stored claims and the code, one line for each place; measures nothing. */
export function checkTexts(stored: StoredClaims): string[] {
  const texts = readTexts()
  const marked = new Set(texts.flatMap(({ file, text }) => findMarks(text, file).map(({ name }) => name)))
  const claimed = [...CLAIMS, ...CODE_CLAIMS].map(({ name }) => name)
  return [
    ...texts.flatMap(({ file, text }) => checkText(text, file, stored)),
    ...claimed.filter((name) => !marked.has(name)).map((name) => `The claim ${name} stands in no text.`),
    ...claimed.filter((name, index) => claimed.indexOf(name) < index).map((name) => `There are two claims named ${name}.`),
    ...Object.keys(stored)
      .filter((name) => !CLAIMS.some((claim) => claim.name === name))
      .map((name) => `bench/results/claims.json has ${name}, and there is no such claim.`),
    ...missingAttacks().map((id) => `docs/isolation.md has no attack ${id}: npm run claims -- --only isolation-table`),
  ]
}

/** The same for one text. Pure. */
export function checkText(text: string, file: string, stored: StoredClaims): string[] {
  const contentOf = contentsFor(text, file, stored)
  return findMarks(text, file).flatMap((mark) => {
    const where = `${file}:${text.slice(0, mark.start).split('\n').length}`
    const content = contentOf(mark)
    if (content === undefined) return [`${where}: there is no claim named ${mark.name}, or it was never measured.`]
    return content === mark.content
      ? []
      : [`${where}: ${mark.name || 'measured'} is ${shown(mark.content)}, and should be ${shown(content)}.`]
  })
}

function contentsFor(text: string, file: string, stored: StoredClaims): (mark: Mark) => string | undefined {
  const marks = findMarks(text, file)
  return (mark) => {
    if (mark.kind === 'claim') return stored[mark.name]?.text ?? CODE_CLAIMS.find(({ name }) => name === mark.name)?.text()
    const names = [...new Set(claimsOfSection(text, marks, mark))]
    return provenanceLine(
      names.flatMap((name) => {
        const claim = stored[name]
        return claim === undefined ? [] : [[name, claim] as const]
      }),
    )
  }
}

function shown(content: string): string {
  const line = content.trim().replaceAll('\n', ' ')
  return JSON.stringify(line.length > 100 ? `${line.slice(0, 100)}…` : line)
}
