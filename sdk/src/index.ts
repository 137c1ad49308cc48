export { defineConfig, type FunctionConfig } from './function-config.ts'
export { defineFunction, type Env, type FetchHandler, type FunctionContext } from './fetch-handler.ts'
export type { LambdaCallback, LambdaContext, LambdaEvent, LambdaHandler, LambdaResponse, LambdaResult } from './lambda-handler.ts'
export { invoke, type Invocable, type InvokeOptions } from './invoke.ts'
