export type { Io } from './io.ts'
export { run } from './main.ts'
export { untilStopped } from './until-stopped.ts'
