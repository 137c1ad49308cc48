export interface Family {
  readonly help: string
  readonly type: string
  readonly samples: Sample[]
}

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary)$/
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/
const NUMBER = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN)$/
const HISTOGRAM_SUFFIX = /_(?:bucket|sum|count)$/

/** The same for the same labels in any order. */
export function seriesKey(labels: Sample['labels'], name = ''): string {
  const names = Object.keys(labels).toSorted()
  return JSON.stringify([name, names.map((label) => [label, labels[label]])])
}

/**
 * Reads Prometheus' text format, version 0.0.4, and refuses what the format forbids or a scrape would take wrongly: a metric must
 * have one HELP and one TYPE, before its samples, which stand together, and no sample comes twice.
 * @throws Error naming the line
 */
export function parseTextFormat(text: string): Map<string, Family> {
  if (text !== '' && !text.endsWith('\n')) throw new Error('The last line has no end.')
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let help: { name: string; text: string } | undefined
  let current: { name: string; family: Family } | undefined
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, helpName, helpText] = HELP.exec(line) ?? []
    const [, typeName, type] = TYPE.exec(line) ?? []
    if (helpName !== undefined && helpText !== undefined) {
      if (help !== undefined || families.has(helpName)) throw new Error(`A second HELP: ${line}`)
      help = { name: helpName, text: helpText }
    } else if (typeName !== undefined && type !== undefined) {
      if (help?.name !== typeName) throw new Error(`A TYPE without its HELP: ${line}`)
      current = { name: typeName, family: { help: help.text, type, samples: [] } }
      families.set(typeName, current.family)
      help = undefined
    } else {
      const sample = parseSample(line)
      const { name, labels } = sample
      const owner = current?.family.type === 'histogram' ? name.replace(HISTOGRAM_SUFFIX, '') : name
      if (current === undefined || owner !== current.name || help !== undefined) throw new Error(`Out of its metric: ${line}`)
      const key = seriesKey(labels, name)
      if (seen.has(key)) throw new Error(`Twice: ${line}`)
      seen.add(key)
      current.family.samples.push(sample)
    }
  }
  if (help !== undefined) throw new Error(`A HELP without its TYPE: ${help.name}`)
  for (const [name, { type }] of families) {
    if ((type === 'counter') !== name.endsWith('_total')) throw new Error(`The name of a ${type}: ${name}`)
  }
  return families
}

function parseSample(line: string): Sample {
  const [, name, labelText = '', valueText] = SAMPLE.exec(line) ?? []
  if (name === undefined || valueText === undefined || !NUMBER.test(valueText)) throw new Error(`No sample: ${line}`)
  const labels: Record<string, string> = {}
  for (let rest = labelText; rest !== ''; ) {
    const [whole, label, escaped] = LABEL.exec(rest) ?? []
    if (whole === undefined || label === undefined || escaped === undefined) throw new Error(`No label: ${line}`)
    if (Object.hasOwn(labels, label)) throw new Error(`A label twice: ${line}`)
    labels[label] = escaped.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))
    rest = rest.slice(whole.length)
  }
  return { name, labels, value: Number(valueText.replace('Inf', 'Infinity')) }
}
