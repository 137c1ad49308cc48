import type { Column } from '../lib/table.ts'
import type { Comparison } from './compare.ts'
import { short, whole } from './words.ts'

const number = (value: number | undefined): string =>
  value === undefined ? '' : Number.isInteger(value) ? whole(value) : short(value)

function changeText({ was, is }: Comparison): string {
  if (was === undefined || is === undefined || was === 0 || was === is) return ''
  const change = (100 * (is - was)) / Math.abs(was)
  return `${change < 0 ? '' : '+'}${change.toFixed(0)} %`
}

/** What a run prints of each figure. */
export const COMPARISON_COLUMNS: ReadonlyArray<Column<Comparison>> = [
  { title: 'claim', align: 'left', text: ({ claim }) => claim },
  { title: 'what', align: 'left', text: ({ what }) => what },
  { title: 'was', text: ({ was }) => number(was) },
  { title: 'is', text: ({ is }) => number(is) },
  { title: 'change', text: changeText },
  { title: 'verdict', align: 'left', text: ({ judgement, note }) => (note === '' ? judgement : `${judgement}: ${note}`) },
]
