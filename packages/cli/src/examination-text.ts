import { sandboxInfo, sandboxSentences } from '@carpool/sandbox'
import type { Check, Examination } from '@carpool/server'
import type { Writable } from 'node:stream'
import { renderTable, type Column } from './table.ts'

type Layer = Examination['layers'][number]

const CHECK_COLUMNS: readonly Column<Check>[] = [
  { title: 'CHECK', text: ({ name }) => name },
  { title: 'STATE', text: ({ state }) => state },
  { title: 'FOUND', text: ({ detail }) => detail },
]

const LAYER_COLUMNS: readonly Column<Layer>[] = [
  { title: 'LAYER', text: ({ name }) => name },
  { title: 'STATE', text: ({ state }) => state },
  { title: 'WHAT IT STOPS', text: ({ stops }) => stops },
]

/** What was found out about a machine, for people: the checks, the layers of the sandbox, and how to get those that are missing. */
export function renderExamination({ checks, layers }: Examination, stream: Writable): string {
  return [
    renderTable(CHECK_COLUMNS, checks, stream),
    renderTable(LAYER_COLUMNS, layers, stream),
    sandboxSentences(sandboxInfo(layers)).join('\n'),
  ].join('\n\n')
}
