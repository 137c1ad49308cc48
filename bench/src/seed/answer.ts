/** What one call of the seed function says about the instance that answered it. */
export interface SeedAnswer {
  readonly instanceId: string
  /** How many calls the instance has had, this one included. */
  readonly invocationId: number
  readonly length: number
  readonly sum: number
}

/** Reads `instanceId,invocationId,length,sum,Hello World`; undefined if the text is anything else. */
export function parseSeedAnswer(body: string): SeedAnswer | undefined {
  const found = /^([0-9a-f-]{36}),(\d+),(\d+),(\d+(?:\.\d+)?(?:e\+\d+)?),Hello World$/.exec(body.trim())
  if (found === null) return undefined
  const [, instanceId = '', invocationId, length, sum] = found
  return { instanceId, invocationId: Number(invocationId), length: Number(length), sum: Number(sum) }
}
