/** URL and URLSearchParams. */
import { library } from '../libraries.ts'
import { serializeUrl } from '../web-api/url/parse-url.ts'
import { isSearchParams, textOfParams, URLSearchParams } from '../web-api/url/search-params.ts'
import { requireUrl, URL } from '../web-api/url/url.ts'
import { asInterfaces } from './interfaces.ts'

export { isSearchParams, requireUrl, serializeUrl, textOfParams, URL, URLSearchParams }

Object.assign(URL, {
  createObjectURL: (blob: unknown) => library('files').createObjectURL(blob),
  revokeObjectURL: (url: unknown) => library('files').revokeObjectURL(url),
})

asInterfaces({ URL, URLSearchParams })

/** Has V8's code cache have what most functions need. */
export function warmUp(): void {
  const url = new URL('http://localhost:80/a%20b?c=d+e#f')
  url.searchParams.get(url.pathname)
  serializeUrl(requireUrl(url.href))
}
