// Uses of packages that work on values, as their READMEs show them. What comes out is the same each time.
export const cases = {
  'joi': async () => {
    const { default: Joi } = await import('joi')
    const schema = Joi.object({
      username: Joi.string().alphanum().min(3).required(),
      email: Joi.string().email(),
      year: Joi.number().integer().min(1900),
    })
    return [schema.validate({ username: 'abc', year: 1994 }).value, schema.validate({ username: 'a' }).error.message]
  },
  'yup': async () => {
    const yup = await import('yup')
    const schema = yup.object({ name: yup.string().required(), age: yup.number().required().positive().integer() })
    return [
      await schema.validate({ name: 'jimmy', age: '24' }),
      await schema.validate({ age: -1 }, { abortEarly: false }).catch((error) => error.errors),
    ]
  },
  'superstruct': async () => {
    const { assert, array, number, object, string } = await import('superstruct')
    const Article = object({ id: number(), title: string(), tags: array(string()) })
    const data = { id: 34, title: 'Hello', tags: ['news'] }
    assert(data, Article)
    try {
      assert({ id: '1' }, Article)
    } catch (error) {
      return [error.message, error.path]
    }
  },
  'valibot': async () => {
    const v = await import('valibot')
    return [
      v.parse(v.object({ email: v.pipe(v.string(), v.email()) }), { email: 'jane@example.com' }),
      v.safeParse(v.string(), 1).issues[0].message,
    ]
  },
  '@sinclair/typebox': async () => {
    const { Type } = await import('@sinclair/typebox')
    const { Value } = await import('@sinclair/typebox/value')
    return [Type.Object({ x: Type.Number() }), Value.Check(Type.Object({ x: Type.Number() }), { x: 'a' })]
  },
  'dayjs': async () => {
    const { default: dayjs } = await import('dayjs')
    return [
      dayjs('2018-08-08').format('DD/MM/YYYY'),
      dayjs('2018-08-08').add(1, 'month').startOf('month').set('year', 2020).format('YYYY-MM-DD'),
    ]
  },
  'luxon': async () => {
    const { DateTime } = await import('luxon')
    return [
      DateTime.fromISO('2017-05-15T08:30:00', { zone: 'America/New_York' }).toISO(),
      DateTime.utc(2020, 1, 1).plus({ days: 3 }).toLocaleString(DateTime.DATE_FULL, { locale: 'de' }),
    ]
  },
  'moment': async () => {
    const { default: moment } = await import('moment')
    return [moment('2011-10-10T10:20:30Z').utc().format('MMMM Do YYYY, h:mm:ss a'), moment.duration(90, 'minutes').humanize()]
  },
  'cookie': async () => {
    const { parseCookie, stringifySetCookie } = await import('cookie')
    return [
      parseCookie('foo=bar; equation=E%3Dmc%5E2'),
      stringifySetCookie({ name: 'foo', value: 'b r', maxAge: 5, httpOnly: true }),
    ]
  },
  'async': async () => {
    const { default: async } = await import('async')
    const mapped = await async.mapLimit([1, 2, 3], 2, async (x) => x * 2)
    const waterfall = await new Promise((resolve) =>
      async.waterfall(
        [(done) => done(null, 'one'), (one, done) => setTimeout(() => done(null, one + 'two'), 1)],
        (error, result) => resolve(result),
      ),
    )
    return [
      mapped,
      waterfall,
      await async.parallel({ one: (done) => setTimeout(() => done(null, 1), 1), two: (done) => done(null, 2) }),
    ]
  },
  'bluebird': async () => {
    const { default: Bluebird } = await import('bluebird')
    return Bluebird.map([1, 2, 3], (x) => Bluebird.delay(1).return(x + 1), { concurrency: 2 })
      .timeout(1000)
      .then((list) => list.join())
  },
  'rxjs': async () => {
    const { filter, firstValueFrom, from, interval, map, range, take, toArray } = await import('rxjs')
    return [
      await firstValueFrom(
        range(1, 10).pipe(
          filter((x) => x % 2 === 1),
          map((x) => x + x),
          toArray(),
        ),
      ),
      await firstValueFrom(interval(1).pipe(take(3), toArray())),
      await firstValueFrom(from(Promise.resolve('p'))),
    ]
  },
  'immer': async () => {
    const { produce } = await import('immer')
    const base = [{ title: 'a', done: false }]
    const next = produce(base, (draft) => {
      draft.push({ title: 'b' })
      draft[0].done = true
    })
    return [base, next, Object.isFrozen(next)]
  },
  'p-limit': async () => {
    const { default: pLimit } = await import('p-limit')
    const limit = pLimit(1)
    return Promise.all([limit(async () => 'foo'), limit(async () => 'bar'), limit(() => limit.pendingCount)])
  },
  'p-queue': async () => {
    const { default: PQueue } = await import('p-queue')
    const queue = new PQueue({ concurrency: 1 })
    const seen = []
    queue.add(async () => seen.push(1))
    queue.add(async () => seen.push(2), { priority: 1 })
    queue.add(async () => seen.push(3), { priority: 2 })
    await queue.onIdle()
    return [seen, queue.size]
  },
  'eventemitter3': async () => {
    const { EventEmitter } = await import('eventemitter3')
    const seen = []
    const emitter = new EventEmitter()
    emitter.once(
      'e',
      function (x) {
        seen.push(x, this.ok)
      },
      { ok: true },
    )
    return [emitter.emit('e', 5), emitter.emit('e'), seen]
  },
  'decimal.js': async () => {
    const { default: Decimal } = await import('decimal.js')
    return [new Decimal(0.1).plus(0.2).toString(), new Decimal('123.456').toFraction().map(String), Decimal.sqrt(2).toFixed(30)]
  },
  'bignumber.js': async () => {
    const { default: BigNumber } = await import('bignumber.js')
    return [
      new BigNumber(0.3).minus(0.1).toString(),
      new BigNumber('1111222233334444555566').toFormat(),
      new BigNumber(255).toString(16),
    ]
  },
  'mathjs': async () => {
    const { chain, derivative, evaluate, round } = await import('mathjs')
    return [
      evaluate('1.2 * (2 + 4.5)'),
      evaluate('12.7 cm to inch').toString(),
      evaluate('det([-1, 2; 3, 1])'),
      derivative('x^2 + x', 'x').toString(),
      chain(3).add(4).multiply(2).done(),
      round(Math.E, 3),
    ]
  },
  'numeral': async () => {
    const { default: numeral } = await import('numeral')
    return [numeral(1000).format('0,0'), numeral(0.974878234).format('0.000%'), numeral(7884486213).format('0.0b')]
  },
  'i18next': async () => {
    const { default: i18next } = await import('i18next')
    await i18next.init({
      lng: 'en',
      resources: { en: { translation: { key: 'hello {{name}}', item_one: '{{count}} item', item_other: '{{count}} items' } } },
    })
    return [i18next.t('key', { name: 'world' }), i18next.t('item', { count: 1 }), i18next.t('item', { count: 2 })]
  },
  'slugify': async () => {
    const { default: slugify } = await import('slugify')
    return [slugify('some string'), slugify('Déjà Vu! & more', { lower: true, strict: true })]
  },
  'diff': async () => {
    const { createPatch, diffChars, diffLines } = await import('diff')
    return [
      diffChars('beep boop', 'beep boob blah').length,
      diffLines('a\nb\n', 'a\nc\n').map(({ value, added }) => [value, added]),
      createPatch('f', 'a\n', 'b\n'),
    ]
  },
  'fuse.js': async () => {
    const { default: Fuse } = await import('fuse.js')
    return new Fuse([{ title: "Old Man's War" }, { title: 'The Lock Artist' }], { keys: ['title'] }).search('artst')
  },
  'mime-types': async () => {
    const { default: mime } = await import('mime-types')
    return [
      mime.lookup('file.html'),
      mime.contentType('markdown'),
      mime.extension('application/octet-stream'),
      mime.charset('text/html'),
    ]
  },
  'object-hash': async () => {
    const { default: hash } = await import('object-hash')
    return [hash({ foo: 'bar' }), hash([1, 2, 2.718], { algorithm: 'md5' })]
  },
  'ramda': async () => {
    const R = await import('ramda')
    return [R.pipe(R.map(R.multiply(2)), R.sum)([1, 2, 3]), R.path(['a', 'b'], { a: { b: 2 } })]
  },
  'deepmerge': async () => {
    const { default: merge } = await import('deepmerge')
    return merge({ a: [1], b: { c: 1 } }, { a: [2], b: { d: 2 } })
  },
  'classnames': async () => {
    const { default: classNames } = await import('classnames')
    return classNames('foo', { bar: true, duck: false }, 'baz')
  },
  'validator': async () => {
    const { default: validator } = await import('validator')
    return [
      validator.isEmail('foo@bar.com'),
      validator.isURL('nope'),
      validator.escape('<a>'),
      validator.normalizeEmail('Some.Name@GMAIL.com'),
      validator.isIP('::1'),
    ]
  },
  'inversify': async () => {
    await import('reflect-metadata')
    const { Container } = await import('inversify')
    const container = new Container()
    container.bind('x').toConstantValue(5)
    return container.get('x')
  },
}
