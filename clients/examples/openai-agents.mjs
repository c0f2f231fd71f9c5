// An agent with the OpenAI Agents SDK: the tools of the box come from /mcp.
import {
  Agent,
  MCPServerStreamableHttp,
  run,
  setDefaultOpenAIClient,
  setOpenAIAPI,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { settings, submitForm } from './site.mjs'

const { mcp, model, task, instructions } = settings()
setTracingDisabled(true)
// most models that are not OpenAI's speak only this one
setOpenAIAPI('chat_completions')
setDefaultOpenAIClient(new OpenAI({ baseURL: model.url, apiKey: model.key }))
const mail = new MCPServerStreamableHttp({ name: 'pillarbox', url: mcp.url, requestInit: { headers: mcp.headers } })
await mail.connect()
try {
  const { name, description, run: execute } = submitForm
  // a form has fields of any name, which the strict mode of the SDK does not allow
  const parameters = {
    type: 'object',
    properties: { url: { type: 'string' }, fields: { type: 'object', additionalProperties: { type: 'string' } } },
    required: ['url'],
    additionalProperties: true,
  }
  const agent = new Agent({
    name: 'agent',
    model: model.name,
    instructions,
    mcpServers: [mail],
    tools: [tool({ name, description, parameters, strict: false, execute })],
  })
  console.log((await run(agent, task, { maxTurns: 30 })).finalOutput)
} finally {
  await mail.close()
}
