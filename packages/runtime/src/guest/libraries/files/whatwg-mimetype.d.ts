declare module 'whatwg-mimetype' {
  export class MIMEType {
    static parse(text: string): MIMEType | null
    readonly essence: string
    readonly parameters: { get(name: string): string | undefined }
    toString(): string
  }
}
