import { dirname, join, sep } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { serverAt, serverFor, type ServerAddress } from '../src/discovery/index.ts'

/** Servers with these data folders. The ports and the times are such that to go by them would show. */
function servers(...dataDirs: readonly string[]): readonly ServerAddress[] {
  return dataDirs.map((dataDir, index) => ({
    url: `http://127.0.0.1:${8080 + index * 10}`,
    adminUrl: `http://127.0.0.1:${8081 + index * 10}`,
    token: 't',
    pid: index + 1,
    dataDir,
    startedAt: `2026-01-0${index + 1}T00:00:00.000Z`,
  }))
}

const chosen = (folder: string, ...dataDirs: readonly string[]): string | undefined =>
  serverFor(servers(...dataDirs), folder)?.dataDir

t.test('the only server is meant everywhere, and none is if there is none', async (t) => {
  for (const folder of ['/', '/elsewhere', '/work/app']) t.equal(chosen(folder, '/work/app/.carpool'), '/work/app/.carpool')
  t.equal(chosen('/work'), undefined)
})

t.test('in a folder that has the data of one in it, and below, that one is meant', async (t) => {
  for (const folder of ['/work/app', '/work/app/src', '/work/app/src/deep', '/work/app/.carpool', '/work/app/.carpool/logs']) {
    t.equal(chosen(folder, '/other/.carpool', '/work/app/.carpool'), '/work/app/.carpool', folder)
  }
})

t.test('the nearest one wins', async (t) => {
  const all = ['/work/.carpool', '/work/app/.carpool', '/work/app/.carpool/inner/.carpool'] as const
  t.equal(chosen('/work/other', ...all), all[0])
  t.equal(chosen('/work/app/src', ...all), all[1])
  t.equal(chosen('/work/app/.carpool', ...all), all[1])
  t.equal(chosen('/work/app/.carpool/inner', ...all), all[2])
})

t.test('in the data folder of one it is that one, though another lies beside it', async (t) => {
  t.equal(chosen('/work/one/logs', '/work/one', '/work/two'), '/work/one')
  t.equal(chosen('/work', '/work/one', '/work/two'), undefined, 'but two in the same folder are not told apart')
  t.equal(chosen('/work/one', '/work/.carpool', '/work/two', '/work/one'), '/work/one')
})

t.test('what is not near is not chosen', async (t) => {
  const cases: ReadonlyArray<readonly [folder: string, dataDir: string]> = [
    ['/work', '/work/app/.carpool'],
    ['/work/application', '/work/app/.carpool'],
    ['/workshop', '/work/app'],
    ['/home', '/work/app/.carpool'],
    ['/home', '/data'],
    ['/', '/data'],
  ]
  for (const [folder, dataDir] of cases) {
    // The other one lies at the front, behind, and nowhere near.
    t.equal(chosen(folder, dataDir, '/far/away/.carpool'), undefined, `${dataDir} in ${folder}`)
    t.equal(chosen(folder, '/far/away/.carpool', dataDir), undefined, `${dataDir} in ${folder}`)
  }
  t.equal(chosen('/data/logs', '/data', '/far/away/.carpool'), '/data', 'in the data folder itself it is')
})

const part = fc.constantFrom('a', 'b', 'ab')
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => sep + parts.join(sep))

t.test('the order of the servers does not matter', async () => {
  fc.assert(
    fc.property(fc.uniqueArray(path, { minLength: 2, maxLength: 5 }), path, (dataDirs, folder) => {
      return chosen(folder, ...dataDirs) === chosen(folder, ...dataDirs.toReversed())
    }),
  )
})

t.test('of several it is one that is at hand, and no other is nearer at hand', async () => {
  const at = (folder: string, dataDir: string): boolean =>
    folder === dataDir || (folder === dirname(dataDir) && dirname(dataDir) !== sep)
  fc.assert(
    fc.property(fc.uniqueArray(path, { minLength: 2, maxLength: 5 }), path, (dataDirs, folder) => {
      // As somebody would look for it: from folder to folder, upwards.
      let expected: string | undefined
      for (let looked = folder; looked !== sep && expected === undefined; looked = dirname(looked)) {
        const found = dataDirs.filter((dataDir) => at(looked, dataDir))
        if (found.length > 1) break
        expected = found[0]
      }
      return chosen(folder, ...dataDirs) === expected
    }),
  )
})

t.test('a URL picks whatever the folder says', async (t) => {
  const all = servers('/a/.carpool', '/b/.carpool')
  t.equal(serverAt(all, 'http://localhost:8091/')?.dataDir, '/b/.carpool')
  t.equal(serverAt(all, 'http://127.0.0.1:8080')?.dataDir, join('/a', '.carpool'))
  t.equal(serverAt(all, 'http://127.0.0.1:1'), undefined)
})
