/** Packages whose use differs from Node.js', with what it waits for. A use that is as it should be is taken out. */
export const WAITING: Readonly<Record<string, string>> = {
  'undici': 'leave to compile WebAssembly (`webAssembly`): use fetch',
}
