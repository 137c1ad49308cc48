import t from 'tap'
import { parseTextFormat } from './support/text-format.ts'

t.test('the check of the text format refuses what is wrong', async (t) => {
  const head = '# HELP a_total Help.\n# TYPE a_total counter\n'
  t.match(
    [...parseTextFormat(`${head}a_total{x="1",y="\\"\\\\\\n"} 1e3\na_total 2\n`)],
    [
      [
        'a_total',
        {
          help: 'Help.',
          type: 'counter',
          samples: [
            { labels: { x: '1', y: '"\\\n' }, value: 1000 },
            { labels: {}, value: 2 },
          ],
        },
      ],
    ],
  )
  for (const wrong of [
    'a_total 1\n',
    '# TYPE a_total counter\na_total 1\n',
    '# HELP a_total Help.\na_total 1\n',
    `${head}${head}`,
    `${head}a_total 1`,
    `${head}a_total 1\na_total 1\n`,
    `${head}b_total 1\n`,
    `${head}a_total one\n`,
    `${head}a_total{x=1} 1\n`,
    `${head}a_total{x="1",x="2"} 1\n`,
    `${head}a_total{x="\\q"} 1\n`,
    `${head}a_total{x="""} 1\n`,
    '# HELP a Help.\n# TYPE a counter\na 1\n',
    '# HELP a Help.\n# TYPE a meter\na 1\n',
    '# HELP 1a Help.\n# TYPE 1a gauge\n1a 1\n',
  ]) {
    t.throws(() => parseTextFormat(wrong), wrong)
  }
})
