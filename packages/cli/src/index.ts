export type { Io } from './command.ts'
export { run } from './main.ts'
export { untilStopped } from './until-stopped.ts'
