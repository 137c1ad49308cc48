import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createResolver, parseHosts, parseSearchRule, searchNames, type Resolve } from '../src/resolver.ts'
import { dnsServer } from './fixtures/dns-server.ts'

function resolverOf(t: Test, server: string, { hosts = '', config = '', timeoutMs = 300 } = {}): Resolve {
  const folder = t.testdir()
  const [hostsPath, configPath] = [join(folder, 'hosts'), join(folder, 'resolv.conf')]
  writeFileSync(hostsPath, hosts)
  writeFileSync(configPath, config)
  return createResolver({ servers: [server], hostsPath, configPath, timeoutMs })
}

const addresses = async (resolve: Resolve, name: string): Promise<string[]> => (await resolve(name)).map(({ address }) => address)

t.test('both families of a name are found', async (t) => {
  const { address } = await dnsServer(t, {
    'two.example': ['1.2.3.4', '1.2.3.5', '2600::1'],
    'six.example': ['2600::2'],
    'none.example': [],
  })
  const resolve = resolverOf(t, address)
  t.same((await addresses(resolve, 'two.example')).toSorted(), ['1.2.3.4', '1.2.3.5', '2600::1'])
  t.same(await resolve('Two.Example.').then(([first]) => first?.family), 4, 'what most machines can reach comes first')
  t.same(await addresses(resolve, 'six.example'), ['2600::2'])
  await t.rejects(resolve('none.example'), { code: 'ENOTFOUND' })
  await t.rejects(resolve('unknown.example'), { code: 'ENOTFOUND' })
})

t.test('a server that is silent about one family does not hold up the other', async (t) => {
  const { address } = await dnsServer(t, { 'half.example': ['1.2.3.4', '2600::1'] }, (question) => question.endsWith(' AAAA'))
  t.same(await addresses(resolverOf(t, address), 'half.example'), ['1.2.3.4'])
})

t.test('a server that is slow for once is waited for, also if it was quick before', async (t) => {
  const names = { 'quick.example': ['1.2.3.4'], 'slow.example': ['1.2.3.5'], 'silent.example': ['1.2.3.6'] }
  const isSilent = (question: string): boolean => question.startsWith('silent')
  const { address } = await dnsServer(t, names, isSilent, (question) => (question.startsWith('slow') ? 1_200 : 0))
  const resolve = resolverOf(t, address, { timeoutMs: 1_500 })
  t.same(await addresses(resolve, 'slow.example'), ['1.2.3.5'], 'at first')
  for (let call = 0; call < 20; call += 1) t.same(await addresses(resolve, 'quick.example'), ['1.2.3.4'])
  const late = Array.from({ length: 5 }, () => addresses(resolve, 'slow.example'))
  t.same(
    await Promise.all(late),
    late.map(() => ['1.2.3.5']),
  )
  t.same(await addresses(resolve, 'slow.example'), ['1.2.3.5'])
  await t.rejects(resolve('silent.example'), { code: 'EAI_AGAIN' })
})

t.test('names that no server answers for hold up no others', async (t) => {
  const { address, questions } = await dnsServer(t, { 'quick.example': ['1.2.3.4'] }, (question) => question.includes('silent'))
  const resolve = resolverOf(t, address)
  const lost = Array.from({ length: 60 }, (_, index) => resolve(`silent-${index}.example`))
  let isOneOver = false
  for (const each of lost) each.catch(() => (isOneOver = true))
  for (let call = 0; call < 20; call += 1) t.same(await addresses(resolve, 'quick.example'), ['1.2.3.4'])
  t.notOk(isOneOver, 'all of them are still under way')
  await t.rejects(Promise.any(lost), { errors: Array.from({ length: 60 }, () => ({ code: 'EAI_AGAIN' })) })
  t.ok(questions.length > 120)
})

t.test('the hosts file goes before servers, and localhost stays on the machine', async (t) => {
  const { address, questions } = await dnsServer(t, { 'known.example': ['1.2.3.4'], 'localhost': ['6.6.6.6'] })
  const resolve = resolverOf(t, address, { hosts: '127.0.0.9 Known.example other # comment\n::9 known.example\nnonsense here\n' })
  t.same(await addresses(resolve, 'known.EXAMPLE.'), ['127.0.0.9', '::9'])
  t.same(await addresses(resolve, 'other'), ['127.0.0.9'])
  for (const name of ['localhost', 'LocalHost.', 'a.localhost'])
    t.same(await addresses(resolve, name), ['127.0.0.1', '::1'], name)
  t.same(questions, [])
})

t.test('the search list is gone through', async (t) => {
  const { address } = await dnsServer(t, {
    'db.internal.example': ['10.0.0.1'],
    'api.prod.cluster.example': ['10.0.0.2'],
    'a.b': ['1.1.1.1'],
  })
  const resolve = resolverOf(t, address, { config: 'search internal.example cluster.example\n' })
  t.same(await addresses(resolve, 'db'), ['10.0.0.1'])
  t.same(await addresses(resolve, 'api.prod'), ['10.0.0.2'])
  t.same(await addresses(resolve, 'a.b'), ['1.1.1.1'])
  await t.rejects(resolve('db.'), { code: 'ENOTFOUND' }, 'a name with a dot at its end is complete')
})

t.test('files of the system are read as the C library reads them', async (t) => {
  const rule = parseSearchRule(
    'domain first\n# search no\nsearch a.example. b ; c\nnameserver 1.1.1.1\noptions timeout:1 ndots:99\n',
  )
  t.same(rule, { domains: ['a.example', 'b'], ndots: 15 })
  t.same(parseSearchRule(''), { domains: [], ndots: 1 })
  t.same(searchNames('a.b', { domains: ['x', 'y'], ndots: 1 }), ['a.b', 'a.b.x', 'a.b.y'])
  t.same(searchNames('a.b', { domains: ['x', 'y'], ndots: 2 }), ['a.b.x', 'a.b.y', 'a.b'])
  t.same(searchNames('a.b.', { domains: ['x'], ndots: 5 }), ['a.b'])
  t.same([...parseHosts('\t1.1.1.1\tA b\n1.1.1.2 a\n\n#1.1.1.3 c\nfe80::1%lo d').keys()], ['a', 'b', 'd'])
})
