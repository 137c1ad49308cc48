exports.handler = async (event, context) => {
  const { method, path } = event.requestContext.http
  const name = event.queryStringParameters?.name ?? 'World'
  console.log('greeting', name)
  return {
    statusCode: 200,
    headers: { 'content-type': 'application/json', 'x-aws-request-id': context.awsRequestId },
    body: JSON.stringify({ greeting: `Hello ${name}`, request: `${method} ${path}`, function: context.functionName }),
  }
}
