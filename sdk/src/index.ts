export { defineConfig, type FunctionConfig } from './define.ts'
export { defineFunction, type Env, type FetchHandler, type FunctionContext } from './define.ts'
export type { LambdaCallback, LambdaContext, LambdaEvent, LambdaHandler, LambdaResponse, LambdaResult } from './lambda.ts'
export { invoke, type Invocable, type InvokeOptions } from './invoke.ts'
