/** Made for each bundle: what Node.js' modules know of where they run, the same for all functions. */
declare module 'carpool-node:facts' {
  const facts: {
    readonly root: string
    readonly execPath: string
    readonly pid: number
    readonly platform: string
    readonly arch: string
    readonly versions: Readonly<Record<string, string>>
    readonly features: Readonly<Record<string, unknown>>
  }
  export default facts
}

/** What it has by name and number. */
declare module 'carpool-node:lists' {
  const lists: {
    readonly builtinModules: readonly string[]
    readonly osConstants: object
    readonly errorNames: Readonly<Record<string, readonly [name: string, message: string]>>
    readonly fsConstants: Readonly<Record<string, number>>
  }
  export default lists
}

/** Files that were bundled with the function, by absolute path; text, or bytes as base64. */
declare module 'carpool-node:assets' {
  const assets: Readonly<Record<string, string | { readonly base64: string }>>
  export default assets
}

/** A module of Node.js' own, as the Node.js that bundles has it. */
declare module 'carpool-node:*' {
  const module: Record<string, never>
  export default module
}
