import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addDeploymentOptions, type DeploymentOptions } from '../deployment-options.ts'
import { buildDeployment, deployedText } from '../deployment.ts'
import type { Verb } from '../verb.ts'

export const deploy: Verb<ConnectionOptions & DeploymentOptions> = {
  define(command) {
    addDeploymentOptions(command)
    addConnectionOptions(command)
  },

  async run({ args: [path = '.'], options, io, output }) {
    const client = connect(options, io.env)
    const { name, request } = await buildDeployment(path, options)
    const deployed = await client.deploy(name, request)
    output.answer(deployed, deployedText(deployed))
  },
}
