export default {
  fetch() {
    return Response.json({ now: new Date().toISOString() })
  },
}
