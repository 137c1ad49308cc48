// Uses of packages that read and write formats and templates.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'

export const cases = {
  'cheerio': async () => {
    const cheerio = await import('cheerio')
    const $ = cheerio.load('<h2 class="title">Hello world</h2><ul><li>a</li><li>b</li></ul>')
    $('h2.title').text('Hello there!').addClass('welcome')
    return [
      $.html(),
      $('li')
        .map((_, li) => $(li).text())
        .get(),
    ]
  },
  'marked': async () => {
    const { marked } = await import('marked')
    return marked.parse('# Marked\n\nRendered by **marked**.\n\n| a | b |\n|---|---|\n| 1 | `x` |\n')
  },
  'markdown-it': async () => {
    const { default: MarkdownIt } = await import('markdown-it')
    return [
      new MarkdownIt({ linkify: true }).render('# hi\n\nsee https://x.y and *this*'),
      new MarkdownIt().renderInline('__a__'),
    ]
  },
  'handlebars': async () => {
    const { default: Handlebars } = await import('handlebars')
    Handlebars.registerHelper('loud', (text) => text.toUpperCase())
    return Handlebars.compile('{{#each people}}<p>{{loud this.name}} {{@index}}</p>{{/each}}')({
      people: [{ name: 'Yehuda' }, { name: '<b>' }],
    })
  },
  'ejs': async () => {
    const { default: ejs } = await import('ejs')
    return [
      ejs.render('<% if (user) { %><h2><%= user.name %></h2><% } %>', { user: { name: '<x>' } }),
      await ejs.render('<%= await p %>', { p: Promise.resolve(1) }, { async: true }),
    ]
  },
  'mustache': async () => {
    const { default: Mustache } = await import('mustache')
    return Mustache.render('{{title}} {{#list}}{{.}},{{/list}}{{^none}}no{{/none}} {{{raw}}}', {
      title: 'Joe',
      list: [1, 2],
      raw: '<b>',
    })
  },
  'pug': async () => {
    const { default: pug } = await import('pug')
    return [
      pug.render('p= name\nul\n  each x in [1,2]\n    li= x', { name: 'Tim' }),
      pug.compile('doctype html\nhtml(lang="en")\n  if youAreUsingPug\n    p.you Yes')({ youAreUsingPug: true }),
    ]
  },
  'nunjucks': async () => {
    const { default: nunjucks } = await import('nunjucks')
    return nunjucks.renderString('Hello {{ username | upper }} {% for x in [1, 2] %}{{ x }}{% endfor %}', { username: 'James' })
  },
  'eta': async () => {
    const { Eta } = await import('eta')
    return new Eta().renderString('Hi <%= it.name %>!', { name: 'Ben' })
  },
  'js-yaml': async () => {
    const yaml = await import('js-yaml')
    const { dump, load } = yaml.default ?? yaml
    return [load('a: 1\nb:\n  - x\n  - {c: true}\nd: 2001-12-14\n'), dump({ a: [1, { b: 'c' }], t: 'x\ny' })]
  },
  'ini': async () => {
    const { parse, stringify } = await import('ini')
    return [
      parse('; c\nscope = global\n[database]\nuser = dbuser\narray[] = a\narray[] = b\n'),
      stringify({ a: 1, s: { b: 'x' } }),
    ]
  },
  'xml2js': async () => {
    const { default: xml2js } = await import('xml2js')
    return [
      await xml2js.parseStringPromise('<root a="1"><x>Hello</x><x>xml2js!</x></root>'),
      new xml2js.Builder().buildObject({ name: 'Super', $: { id: 1 } }),
    ]
  },
  'fast-xml-parser': async () => {
    const { XMLBuilder, XMLParser, XMLValidator } = await import('fast-xml-parser')
    return [
      new XMLParser({ ignoreAttributes: false }).parse('<a b="1"><c>2</c><c>x</c></a>'),
      new XMLBuilder({ format: true }).build({ a: { b: [1, 2] } }),
      XMLValidator.validate('<a>'),
    ]
  },
  'csv-parse': async () => {
    const { parse } = await import('csv-parse')
    const { parse: sync } = await import('csv-parse/sync')
    const records = []
    await pipeline(Readable.from(['a,b\n1,"x ', 'y"\n2,z\n']), parse({ columns: true }), async (source) => {
      for await (const record of source) records.push(record)
    })
    const byCallback = await new Promise((resolve, reject) =>
      parse('1:2\n3:4', { delimiter: ':' }, (error, rows) => (error ? reject(error) : resolve(rows))),
    )
    return [records, byCallback, sync('k,v\n1,2', { columns: true, cast: true })]
  },
  'csv-stringify': async () => {
    const { stringify } = await import('csv-stringify')
    const { stringify: sync } = await import('csv-stringify/sync')
    return [
      sync([
        ['1', 'a"b'],
        ['2', 'c,d'],
      ]),
      await text(
        Readable.from([
          [1, 2],
          [3, 4],
        ]).pipe(stringify({ header: true, columns: ['x', 'y'] })),
      ),
    ]
  },
  'papaparse': async () => {
    const { default: Papa } = await import('papaparse')
    return [Papa.parse('a,b\n1,2', { header: true, dynamicTyping: true }).data, Papa.unparse([{ a: 1, b: 'x,y' }])]
  },
  'sanitize-html': async () => {
    const { default: sanitizeHtml } = await import('sanitize-html')
    return sanitizeHtml('<b onclick="x()">hi</b><script>alert(1)</script><a href="javascript:x">l</a><img src=x>', {
      allowedTags: ['b', 'a'],
    })
  },
  'turndown': async () => {
    const { default: TurndownService } = await import('turndown')
    return new TurndownService().turndown('<h1>Hello world!</h1><ul><li>a <b>b</b></li></ul>')
  },
  'pako': async () => {
    const pako = await import('pako')
    return [Buffer.from(pako.deflate('hello hello hello')).toString('hex'), pako.inflate(pako.gzip('text'), { to: 'string' })]
  },
  'jszip': async () => {
    const { default: JSZip } = await import('jszip')
    const zip = new JSZip()
    zip.file('a.txt', 'Hello', { date: new Date(0) })
    zip.folder('d').file('b.txt', 'b'.repeat(50), { date: new Date(0) })
    const bytes = await zip.generateAsync({ type: 'uint8array', compression: 'DEFLATE' })
    const read = await JSZip.loadAsync(bytes)
    return [
      Object.keys(read.files),
      await read.file('a.txt').async('string'),
      (await read.file('d/b.txt').async('nodebuffer')).length,
    ]
  },
  'chalk': async () => {
    const { Chalk } = await import('chalk')
    const chalk = new Chalk({ level: 1 })
    return [chalk.blue('Hello') + ' World' + chalk.red('!'), chalk.bold.bgGreen('x')]
  },
  'through2': async () => {
    const { default: through2 } = await import('through2')
    return text(
      Readable.from(['abc', 'a']).pipe(
        through2(function (chunk, encoding, done) {
          for (let i = 0; i < chunk.length; i++) if (chunk[i] === 97) chunk[i] = 122
          this.push(chunk)
          done()
        }),
      ),
    )
  },
  'react-dom/server': async () => {
    const { createElement: h, Suspense } = await import('react')
    const { renderToReadableStream, renderToStaticMarkup, renderToString } = await import('react-dom/server')
    const App = ({ name }) =>
      h(
        'div',
        { className: 'a' },
        'Hello ',
        name,
        h(
          'ul',
          null,
          [1, 2].map((x) => h('li', { key: x }, x)),
        ),
      )
    const stream = await renderToReadableStream(h(Suspense, { fallback: 'wait' }, h(App, { name: 'stream' })))
    return [
      renderToString(h(App, { name: '<x>' })),
      renderToStaticMarkup(h(App, { name: 'y' })),
      await new Response(stream).text(),
    ]
  },
  'graphql': async () => {
    const { buildSchema, graphql, parse, print } = await import('graphql')
    const schema = buildSchema('type Query { hello(name: String): String, list: [Int!]! }')
    return [
      await graphql({
        schema,
        source: '{ hello(name: "a") list }',
        rootValue: { hello: ({ name }) => `hi ${name}`, list: () => [1, 2] },
      }),
      print(parse('{a(b:1){c}}')),
      (await graphql({ schema, source: '{ nope }' })).errors[0].message,
    ]
  },
  'winston': async () => {
    const { default: winston } = await import('winston')
    const { Writable } = await import('node:stream')
    const lines = []
    const stream = new Writable({
      write(chunk, encoding, done) {
        lines.push(String(chunk).trim())
        done()
      },
    })
    const logger = winston.createLogger({
      level: 'info',
      format: winston.format.combine(winston.format.splat(), winston.format.json()),
      defaultMeta: { service: 'u' },
      transports: [new winston.transports.Stream({ stream }), new winston.transports.Console({ silent: true })],
    })
    logger.info('hello %s', 'there')
    logger.debug('not shown')
    logger.child({ requestId: '1' }).error(new Error('broken').message)
    await new Promise((resolve) => {
      logger.on('finish', resolve)
      logger.end()
    })
    return lines
  },
  'pino': async () => {
    const { default: pino } = await import('pino')
    const lines = []
    const logger = pino(
      { base: null, timestamp: false, redact: ['secret'], browser: { asObject: true } },
      { write: (line) => lines.push(JSON.parse(line)) },
    )
    logger.info({ a: 1, secret: 'x' }, 'hello %d', 42)
    logger.child({ module: 'm' }).warn('child')
    return lines
  },
  'color': async () => {
    const { default: Color } = await import('color')
    return [Color('#7743CE').alpha(0.5).lighten(0.5).string(), Color.rgb(255, 255, 255).hex()]
  },
}
