/** Blob, File and FormData, how they become bodies and bodies become them, and URLs that have their content in themselves. */
export { Blob, blobOf, bytesOfBlob, copyBlob, File, isBlob, isFile, typeOfBlob } from './files/blob.ts'
export { responseOfData } from './files/data-url.ts'
export { FormData, formDataOf, isFormData } from './files/form-data.ts'
export { blobTypeOf, encodeMultipart, readForm } from './files/multipart.ts'
export { createObjectURL, resolveObjectURL, revokeObjectURL } from './files/object-url.ts'
