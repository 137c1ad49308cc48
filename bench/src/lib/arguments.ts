import { parseArgs } from 'node:util'
import type { ReportOptions } from './report.ts'

export interface Option {
  readonly help: string
  readonly default: string
}

export interface BenchArguments<Name extends string> extends ReportOptions {
  /** Prints the tables as Markdown. */
  readonly markdown: boolean
  text(name: Name): string
  /** A whole number of at least `min`. */
  whole(name: Name, min?: number): number
  /** Whole numbers between commas. */
  wholes(name: Name): number[]
  /** One of the words that it may be. */
  word<Word extends string>(name: Name, known: readonly Word[]): Word
  /** Such words between commas. */
  words<Word extends string>(name: Name, known: readonly Word[]): Set<Word>
}

const FLAGS = {
  json: 'print the raw results as JSON',
  markdown: 'print the tables as Markdown',
  save: 'write the results to bench/results',
  help: 'print this and stop',
} as const

/** Reads the command line of a bench. Prints the help and ends the process if it is asked for or makes no sense. */
export function benchArguments<Name extends string>(usage: string, options: Record<Name, Option>): BenchArguments<Name> {
  try {
    const named = Object.entries<Option>(options)
    const { values } = parseArgs({
      options: {
        ...Object.fromEntries(named.map(([name]) => [name, { type: 'string' as const }])),
        ...Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'boolean' as const }])),
      },
    })
    if (values['help']) {
      process.stdout.write(helpText(usage, named))
      process.exit(0)
    }
    const text = (name: Name): string => String(values[name] ?? options[name].default)
    const texts = (name: Name): string[] => text(name).split(',')
    return {
      json: values['json'] === true,
      markdown: values['markdown'] === true,
      save: values['save'] === true,
      text,
      whole: (name, min = 0) => wholeNumber(name, text(name), min),
      wholes: (name) => texts(name).map((part) => wholeNumber(name, part, 1)),
      word: (name, known) => knownWord(name, text(name), known),
      words: (name, known) => new Set(texts(name).map((part) => knownWord(name, part, known))),
    }
  } catch (error) {
    return refuse(error as Error)
  }
}

function wholeNumber(name: string, text: string, min: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isSafeInteger(value) && value >= min) return value
  return refuse(new RangeError(`--${name} must be a whole number of at least ${min}, not ${JSON.stringify(text)}.`))
}

function knownWord<Word extends string>(name: string, text: string, known: readonly Word[]): Word {
  const word = known.find((one) => one === text)
  return word ?? refuse(new RangeError(`--${name} knows ${known.join(', ')}, not ${JSON.stringify(text)}.`))
}

function refuse(error: Error): never {
  process.stderr.write(`${error.message}\n`)
  process.exit(2)
}

function helpText(usage: string, options: ReadonlyArray<readonly [string, Option]>): string {
  const rows = [
    ...options.map(([name, option]) => [
      `--${name} <value>`,
      `${option.help}${option.default === '' ? '' : ` (default: ${option.default})`}`,
    ]),
    ...Object.entries(FLAGS).map(([name, help]) => [`--${name}`, help]),
  ]
  const width = Math.max(...rows.map(([flag = '']) => flag.length))
  return `${usage}\n\n${rows.map(([flag = '', help]) => `  ${flag.padEnd(width)}  ${help}`).join('\n')}\n`
}
