/** A client that reads a body as it comes. */
export interface BodyReader {
  /** Reads on until what has come has this in it. @throws Error if it ends before */
  until(text: string): Promise<void>
  /** What has come by now. */
  came(): string
  /** Reads to the end, and gives all. */
  all(): Promise<string>
}

export function readerOf({ body }: Response): BodyReader {
  if (body === null) throw new Error('There is no body.')
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let came = ''
  const read = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    came += value ?? ''
    return !done
  }
  return {
    async until(text) {
      while (!came.includes(text)) if (!(await read())) throw new Error(`It ended without ${text}: ${came}`)
    },
    came: () => came,
    async all() {
      while (await read());
      return came
    },
  }
}
