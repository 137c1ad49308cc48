import type { Answer } from '../harness/call.ts'
import type { Attacked, CaseContext } from '../harness/isolation-case.ts'
import type { Rig } from '../harness/rig.ts'

/** A fetch that a function tries: a URL, and the options of fetch that JSON can hold. */
export interface Attempt extends Readonly<Record<string, unknown>> {
  readonly url: string
}

/** Handler that tries the fetches in the body of its request, and answers with what came of each: a line for each. */
export const TRY_ALL = `
  const attempts = await request.json();
  const outcomes = await Promise.all(attempts.map(async ({ url, ...init }) => {
    try {
      const response = await fetch(url, init);
      return 'answered ' + response.status + ' ' + await response.text();
    } catch (error) {
      return error.name + ': ' + error.message;
    }
  }));
  return Response.json(outcomes);`

/** Handler that fetches what \`?to=\` names, reads it, and answers with the status and the length, or with the refusal. */
export const TRY_ONE = `
  try {
    const response = await fetch(new URL(request.url).searchParams.get('to'));
    return new Response(response.status + ' ' + (await response.text()).length + ' bytes');
  } catch (error) {
    return new Response('refused: ' + error.name + ': ' + error.message);
  }`

/** An attack that is one call of {@link TRY_ALL}. */
export function tryAll(attempts: (rig: Rig) => readonly Attempt[]): (context: CaseContext) => Promise<Attacked> {
  return async ({ rig, call }) => ({
    answers: [await call('/', { method: 'POST', body: JSON.stringify(attempts(rig)) })],
  })
}

/** What came of the fetches that {@link TRY_ALL} tried. */
export function outcomesIn(answers: readonly Answer[]): string[] {
  return answers.flatMap(({ text }) => JSON.parse(text) as string[])
}

/** Path that makes {@link TRY_ONE} fetch a URL. */
export function pathTo(url: string): string {
  return `/?to=${encodeURIComponent(url)}`
}
