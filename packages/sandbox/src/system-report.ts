/** What of Node.js' own report is of use here. */
interface SystemReport {
  /** Libraries of this process, the loader included. */
  readonly sharedObjects?: readonly string[]
  readonly userLimits?: Readonly<Record<string, { readonly soft: number | 'unlimited' }>>
}

/** What Node.js reports of its process and the system; takes a few ms. */
export function systemReport(): SystemReport {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }
  const before = report.excludeNetwork
  // Names of network peers would be looked up.
  report.excludeNetwork = true
  try {
    return report.getReport()
  } finally {
    report.excludeNetwork = before
  }
}
