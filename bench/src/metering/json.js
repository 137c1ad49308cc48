// Allocates and throws away: makes work for the garbage collection.
export default {
  fetch() {
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b', 'c'] }))
    const copy = JSON.parse(JSON.stringify(rows))
    return Response.json({ rows: copy.filter(({ id }) => id % 2 === 0).length })
  },
}
