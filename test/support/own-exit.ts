// For tests with isolates in their own process. When Node.js tears itself down after a natural end, a last garbage collection
// can run weak callbacks of isolated-vm 7.0.1 that abort the process, for their environment is gone by then. An exit by
// process.exit() has no such tear-down.
process.once('beforeExit', () => setImmediate(() => process.exit()))
