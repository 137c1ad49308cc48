/** Which of the Web Platform Tests are run, and how they are grouped in the table. */
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'

export interface Area {
  /** As the table has it. */
  readonly name: string
  /** Folders of the tests. */
  readonly folders: readonly string[]
}

export const AREAS: readonly Area[] = [
  { name: 'url', folders: ['url'] },
  { name: 'urlpattern', folders: ['urlpattern'] },
  { name: 'encoding', folders: ['encoding'] },
  { name: 'streams', folders: ['streams'] },
  { name: 'fetch: headers', folders: ['fetch/api/headers'] },
  { name: 'fetch: request', folders: ['fetch/api/request'] },
  { name: 'fetch: response', folders: ['fetch/api/response'] },
  { name: 'fetch: other', folders: ['fetch/api/abort', 'fetch/api/basic', 'fetch/api/body', 'fetch/data-urls'] },
  { name: 'FileAPI', folders: ['FileAPI'] },
  { name: 'FormData', folders: ['xhr/formdata'] },
  { name: 'MIME types', folders: ['mimesniff'] },
  { name: 'dom: abort', folders: ['dom/abort'] },
  { name: 'dom: events', folders: ['dom/events'] },
  {
    name: 'atob, timers, microtasks',
    folders: ['html/webappapis/atob', 'html/webappapis/timers', 'html/webappapis/microtask-queuing'],
  },
  { name: 'structured clone', folders: ['html/webappapis/structured-clone'] },
  { name: 'messages', folders: ['webmessaging'] },
  { name: 'compression', folders: ['compression'] },
  { name: 'crypto', folders: ['WebCryptoAPI'] },
  { name: 'console', folders: ['console'] },
  { name: 'clock', folders: ['hr-time'] },
  { name: 'performance', folders: ['user-timing', 'performance-timeline'] },
]

/** What is not run, and why. */
const LEFT_OUT: ReadonlyArray<readonly [pattern: RegExp, why: string]> = [
  [/idlharness/, 'how each member is written in an interface definition'],
  [/\bhttps?\b.*\.sub\.|\.sub\.any\.js$|\.h2\.any\.js$/, "needs WPT's own server"],
  [/broadcastchannel/, 'there is no other context to broadcast to'],
]

export interface TestFile {
  /** Below the root, with slashes: the name of the test. */
  readonly path: string
  readonly root: string
}

/** The tests of an area, of the first root that has its folder. */
export function testsOf(area: Area, roots: readonly string[]): TestFile[] {
  return area.folders.flatMap((folder) => {
    const root = roots.find((candidate) => existsSync(join(candidate, folder)))
    if (root === undefined) return []
    return globSync(`${folder}/**/*.any.js`, { cwd: root })
      .toSorted()
      .filter((path) => !LEFT_OUT.some(([pattern]) => pattern.test(path)))
      .map((path) => ({ path, root }))
  })
}
