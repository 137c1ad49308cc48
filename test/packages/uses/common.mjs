import { Readable } from 'node:stream'

// Uses of packages that the repository has among its own: every run of the tests tries them.
export const cases = {
  'lodash': async () => {
    const { default: _ } = await import('lodash')
    return [
      _.chunk([1, 2, 3], 2),
      _.groupBy([6.1, 4.2, 6.3], Math.floor),
      _.merge({ a: [{ b: 2 }] }, { a: [{ c: 3 }] }),
      _.template('hello <%= user %>!')({ user: 'fred' }),
      _.isEqual(new Map([[1, 2]]), new Map([[1, 2]])),
      _.cloneDeep({ a: Buffer.from('x') }),
    ]
  },
  'zod': async () => {
    const { z } = await import('zod')
    const User = z.object({ name: z.string().min(2), email: z.email(), age: z.coerce.number().optional() })
    return [User.parse({ name: 'Ada', email: 'a@b.co', age: '5' }), User.safeParse({ name: 'A', email: 'x' }).error.issues]
  },
  'ajv': async () => {
    const { default: Ajv } = await import('ajv')
    const validate = new (Ajv.default ?? Ajv)().compile({
      type: 'object',
      properties: { foo: { type: 'integer' }, bar: { type: 'string' } },
      required: ['foo'],
      additionalProperties: false,
    })
    return [validate({ foo: 1, bar: 'abc' }), validate({ foo: 'x', b: 1 }), validate.errors]
  },
  'date-fns': async () => {
    const { addDays, compareAsc, format } = await import('date-fns')
    return [
      format(new Date(2014, 1, 11), 'yyyy-MM-dd'),
      [new Date(1995, 6, 2), new Date(1987, 1, 11)].sort(compareAsc).map((d) => d.getFullYear()),
      addDays(new Date(0), 5).toISOString(),
    ]
  },
  'uuid': async () => {
    const { v4, v5, v7, validate } = await import('uuid')
    return [validate(v4()), v5('hello.example.com', v5.DNS), validate(v7()), v4() === v4()]
  },
  'nanoid': async () => {
    const { customAlphabet, nanoid } = await import('nanoid')
    return [nanoid().length, /^[ab]{5}$/.test(customAlphabet('ab', 5)())]
  },
  'qs': async () => {
    const { default: qs } = await import('qs')
    return [qs.parse('foo[bar]=baz&a[]=b&a[]=c'), qs.stringify({ a: [1, 2], b: { c: 'd' } })]
  },
  'semver': async () => {
    const { default: semver } = await import('semver')
    return [
      semver.valid('1.2.3'),
      semver.clean('  =v1.2.3   '),
      semver.satisfies('1.2.3', '1.x || >=2.5.0 || 5.0.0 - 7.2.3'),
      semver.gt('1.2.3', '9.8.7'),
      semver.inc('1.2.3', 'prerelease', 'beta'),
    ]
  },
  'ms': async () => {
    const { default: ms } = await import('ms')
    return [ms('2 days'), ms('-1h'), ms(60000, { long: true })]
  },
  'lru-cache': async () => {
    const { LRUCache } = await import('lru-cache')
    const cache = new LRUCache({ max: 2, ttl: 1000 })
    cache.set('a', 1).set('b', 2)
    cache.get('a')
    cache.set('c', 3)
    return [cache.has('a'), cache.has('b'), cache.get('c'), cache.size, [...cache.keys()]]
  },
  'minimatch': async () => {
    const { minimatch } = await import('minimatch')
    return [minimatch('bar.foo', '*.foo'), minimatch('a/b/c.js', '**/*.{js,ts}'), minimatch('x.JS', '*.js', { nocase: true })]
  },
  'path-to-regexp': async () => {
    const { compile, match } = await import('path-to-regexp')
    return [match('/:foo/:bar')('/test/route'), compile('/user/:id')({ id: 'x y' }), match('/files/*path')('/files/a/b')]
  },
  'fast-deep-equal': async () => {
    const { default: equal } = await import('fast-deep-equal')
    return [equal({ foo: 'bar' }, { foo: 'bar' }), equal([1], [2])]
  },
  'iconv-lite': async () => {
    const { default: iconv } = await import('iconv-lite')
    const out = []
    for await (const chunk of Readable.from([Buffer.from([0x83, 0x65]), Buffer.from([0x83, 0x58])]).pipe(
      iconv.decodeStream('shift_jis'),
    ))
      out.push(chunk)
    return [
      iconv.decode(Buffer.from([0xcf, 0xf0, 0xe8]), 'win1251'),
      iconv.encode('Sample €', 'win1252').toString('hex'),
      iconv.encodingExists('us-ascii'),
      out.join(''),
    ]
  },
  'debug': async () => {
    const { default: debug } = await import('debug')
    const log = debug('app:x')
    return [log.enabled, log.namespace, debug.enabled('y'), typeof log.extend('z')]
  },
  'yaml': async () => {
    const { parse, stringify } = await import('yaml')
    return [parse('YAML:\n  - A human-readable language\n  - &x 1\n  - *x\n'), stringify({ a: [1, 'two', null], b: { c: true } })]
  },
  'fastify': async () => {
    const { default: fastify } = await import('fastify')
    const app = fastify()
    app.get(
      '/u/:id',
      {
        schema: {
          params: { type: 'object', properties: { id: { type: 'integer' } } },
          response: { 200: { type: 'object', properties: { id: { type: 'integer' } } } },
        },
      },
      async (request) => ({ id: request.params.id, hidden: 1 }),
    )
    app.post('/p', async (request, reply) => reply.code(201).header('x-a', 'b').send(request.body))
    const ask = async (options) => {
      const { statusCode, body, headers } = await app.inject(options)
      return [statusCode, body, headers['content-type'], headers['x-a']]
    }
    return [
      await ask({ url: '/u/5' }),
      await ask({ url: '/u/x' }),
      await ask({ method: 'POST', url: '/p', payload: { a: 1 } }),
      await ask({ url: '/no' }),
    ]
  },
}
