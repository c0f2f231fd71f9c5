// An agent with LangChain: the tools of the box come from /mcp.
import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { ChatOpenAI } from '@langchain/openai'
import { createAgent, tool } from 'langchain'
import { settings, submitForm } from './site.mjs'

const { mcp, model, task, instructions } = settings()
const mail = new MultiServerMCPClient({ mcpServers: { pillarbox: { transport: 'http', ...mcp, automaticSSEFallback: false } } })
try {
  const { name, description, input: schema, run } = submitForm
  const agent = createAgent({
    model: new ChatOpenAI({ model: model.name, apiKey: model.key, configuration: { baseURL: model.url } }),
    tools: [...(await mail.getTools()), tool(run, { name, description, schema })],
    systemPrompt: instructions,
  })
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content: task }] }, { recursionLimit: 60 })
  console.log(messages.at(-1).text)
} finally {
  await mail.close()
}
