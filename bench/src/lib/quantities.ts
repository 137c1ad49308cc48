/** Numbers as people read them. */

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}

export function milliseconds(ms: number): string {
  return `${ms.toFixed(ms < 100 ? 2 : 0)} ms`
}

export function kibibytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`
}

export function cpuSeconds(value: number): string {
  return `${value.toFixed(2)} s`
}

export function times(ratio: number): string {
  return `${ratio.toFixed(2)}x`
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
