export { drain, type DrainOptions, type GatewayPhase } from './drain.ts'
export { errorOfFastify } from './fastify-problem.ts'
export { answerClientError, createGateway, type GatewayOptions } from './gateway.ts'
