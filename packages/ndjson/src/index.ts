export { readLastLines } from './last-lines.ts'
export { RotatingFile, type RotatingFileOptions } from './rotating-file.ts'
