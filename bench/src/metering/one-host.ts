/**
 * Flags of a server whose readings of the system are those of one host that takes calls, and which refuses no call though the
 * load is more than that host can work off at once: every call is to be measured.
 */
export const ONE_HOST: readonly string[] = ['--max-hosts', '1', '--queue-interval-ms', '60000', '--max-queue-ms', '60000']
