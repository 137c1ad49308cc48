/** The lines of a text that comes in chunks, without their ends; empty lines are left out. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let unfinished = ''
  for await (const chunk of chunks) {
    const lines = (unfinished + decoder.decode(chunk, { stream: true })).split('\n')
    unfinished = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  if (unfinished !== '') yield unfinished
}
