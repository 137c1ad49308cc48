export default {
  async fetch() {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    return new Response('slept')
  },
}
