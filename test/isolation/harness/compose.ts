import type { IsolationCase } from './isolation-case.ts'

/** Where a composed function answers by itself. */
export const AGAIN_PATH = '/again'
/** Where it runs until it is ended. */
export const END_PATH = '/end'

/**
 * The script of a case. What it answers `/again` with is taken before code of the case runs, which may spoil every built-in
 * that there is.
 */
export function scriptOf({
  script,
  scope = '',
  handler = 'return new Response("fine")',
}: Pick<IsolationCase, 'script' | 'scope' | 'handler'>): string {
  if (script !== undefined) return script
  return `(function () {
"use strict";
const { Response: OwnResponse, String: ownText } = globalThis;
const endsWith = Function.prototype.call.bind(String.prototype.endsWith);
const urlOf = Function.prototype.call.bind(Object.getOwnPropertyDescriptor(Request.prototype, 'url').get);
let callsSeen = 0;
${scope}
return { default: { fetch(request, env, ctx) {
  if (endsWith(urlOf(request), '${AGAIN_PATH}')) return new OwnResponse('seen ' + callsSeen);
  if (endsWith(urlOf(request), '${END_PATH}')) for (;;);
  callsSeen++;
  return (async function () { ${handler} }).call(this);
} } };
})`
}
