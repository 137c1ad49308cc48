import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A function of the sample, with what is known of its calls. */
export interface SampledFunction {
  /** Short, and valid as a name in Carpool. */
  readonly name: string
  readonly trigger: string
  /** Calls in each minute. */
  readonly callsPerMinute: readonly number[]
  /** Durations in ms at {@link PERCENTS}. */
  readonly durationsMs: readonly number[]
}

/** The percentiles of durations that the data set has. */
export const PERCENTS = [0, 1, 25, 50, 75, 99, 100] as const

const KEY = ['HashOwner', 'HashApp', 'HashFunction'] as const

/** Reads `invocations.csv` and `durations.csv` of a folder. @throws Error that says what is missing */
export function readSample(folder: string): SampledFunction[] {
  const read = (file: string): string => {
    try {
      return readFileSync(join(folder, file), 'utf8')
    } catch (error) {
      throw new Error(`The sample in ${folder} has no ${file} that can be read.`, { cause: error })
    }
  }
  return parseSample(read('invocations.csv'), read('durations.csv'))
}

/** Joins the two tables. @throws Error if a function has calls and no durations, or a figure is none */
export function parseSample(invocations: string, durations: string): SampledFunction[] {
  const durationRows = new Map(parseCsv(durations).map((row) => [keyOf(row), row]))
  return parseCsv(invocations).map((row, index) => {
    const known = durationRows.get(keyOf(row))
    if (known === undefined) throw new Error(`Function ${index + 1} of the sample has calls, but no durations.`)
    const minutes = Object.keys(row).filter((column) => /^\d+$/.test(column))
    return {
      name: `f${index + 1}`,
      trigger: row['Trigger'] ?? '',
      callsPerMinute: minutes.map((minute) => figure(row, minute)),
      durationsMs: PERCENTS.map((percent) => figure(known, `percentile_Average_${percent}`)),
    }
  })
}

type Row = Readonly<Record<string, string>>

/** Without quotes, which the data set does not use. */
function parseCsv(text: string): Row[] {
  const [head = '', ...lines] = text.split(/\r?\n/).filter((line) => line !== '')
  const columns = head.split(',')
  return lines.map((line) => {
    const cells = line.split(',')
    return Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? '']))
  })
}

function keyOf(row: Row): string {
  return KEY.map((column) => row[column]).join(' ')
}

function figure(row: Row, column: string): number {
  const text = row[column] ?? ''
  const value = text === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value) || value < 0)
    throw new Error(`${column} of the sample is ${JSON.stringify(text)}, which is no figure.`)
  return value
}
