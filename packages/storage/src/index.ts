export { makeFolder, openFile, openFileSync } from './files.ts'
export { readLastLines, RotatingFile, type RotatingFileOptions } from './ndjson.ts'
export {
  checkIntegrity,
  describeFailure,
  isDamage,
  migrate,
  openForReading,
  openForWriting,
  resultCode,
  transact,
  unusable,
  type OpenOptions,
  type ResultCode,
  type StoreName,
} from './sqlite.ts'
