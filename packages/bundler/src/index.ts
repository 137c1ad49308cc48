export { buildDeployment, type Deployment, type DeploymentOptions } from './build-deployment.ts'
export { bundleFunction, type BundledFunction, type BundleOptions } from './bundle-function.ts'
export { checkFunctionConfig, type FunctionConfig } from './config.ts'
