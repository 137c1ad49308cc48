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
