// Carpool and workerd run this same file.
export default {
  async fetch() {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return new Response('hello')
  },
}
