// Carpool and workerd run this same file.
export default {
  fetch() {
    return new Response('hello')
  },
}
