export { Admission, type AdmissionOptions, type Permit } from './admission.ts'
