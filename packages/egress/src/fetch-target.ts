import { refusal } from './failure.ts'

/**
 * Reads a URL that is to be fetched, and checks what can be told without its address.
 * @param base what a relative URL is relative to, such as the URL that redirects
 * @throws refusal
 */
export function fetchTarget(text: string, base?: URL): URL {
  const url = URL.parse(text, base)
  if (url === null) throw refusal('The URL is not valid.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`Only http: and https: can be fetched, not ${url.protocol.slice(0, 40)}`)
  }
  if (url.username !== '' || url.password !== '') throw refusal('A URL with a user name or a password cannot be fetched.')
  return url
}
