// Carpool and workerd run this same file.
export default {
  async fetch(request) {
    return Response.json(await request.json())
  },
}
