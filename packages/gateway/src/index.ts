export { errorOfFastify } from './fastify-problem.ts'
export { createGateway, type GatewayOptions } from './gateway.ts'
