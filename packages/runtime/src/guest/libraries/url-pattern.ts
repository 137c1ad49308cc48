/** URLPattern, from urlpattern-polyfill. */
export { URLPattern } from 'urlpattern-polyfill/urlpattern'
