import { createElement as h, Suspense, use } from 'react'
import { renderToReadableStream } from 'react-dom/server'

const parts = new Map()
const seen = { errors: [] }

/** A part of the page that comes when the test has it come. */
const Late = ({ name, until }) => h('p', null, `${name} ${use(until)}`)

const Page = ({ late }) =>
  h(
    'html',
    null,
    h(
      'body',
      null,
      h('h1', null, 'the shell'),
      late.map(({ name, until }) =>
        h(Suspense, { key: name, fallback: h('i', null, `waits for ${name}`) }, h(Late, { name, until })),
      ),
    ),
  )

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    const name = searchParams.get('name')
    if (pathname === '/seen') return Response.json(seen)
    if (pathname === '/come') {
      parts.get(name).resolve('came')
      return new Response('it comes')
    }
    const late = ['first', 'second'].map((name) => {
      const { promise, resolve } = Promise.withResolvers()
      parts.set(name, { resolve })
      return { name, until: promise }
    })
    const body = await renderToReadableStream(h(Page, { late }), {
      signal: request.signal,
      onError: (error) => void seen.errors.push(error.name),
    })
    if (pathname === '/ready') await body.allReady
    return new Response(body, { headers: { 'content-type': 'text/html' } })
  },
}
