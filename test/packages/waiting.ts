/** Packages whose use differs from Node.js', with what it waits for. A use that is as it should be is taken out. */
export const WAITING: Readonly<Record<string, string>> = {
  'jose': 'crypto.subtle',
  'jsonwebtoken': 'node:crypto',
  'object-hash': 'node:crypto',
  'hono': 'crypto.subtle',
  'react-dom/server': 'MessageChannel',
  'stripe': 'node:crypto',
}
