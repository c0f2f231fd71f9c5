// An agent with the Claude Agent SDK: the tools of the box come from /mcp. The model is that of ANTHROPIC_API_KEY.
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk'
import { settings, submitForm } from './site.mjs'

const { mcp, task, instructions } = settings()
const { name, description, input, run } = submitForm
const form = tool(name, description, input.shape, async (given) => ({ content: [{ type: 'text', text: await run(given) }] }))
const messages = query({
  prompt: task,
  options: {
    systemPrompt: instructions,
    mcpServers: {
      pillarbox: { type: 'http', ...mcp, alwaysLoad: true },
      site: createSdkMcpServer({ name: 'site', tools: [form] }),
    },
    // no shell and no files: only the box and the site
    tools: [],
    allowedTools: ['mcp__pillarbox', 'mcp__site'],
    settingSources: [],
    maxTurns: 30,
  },
})
for await (const message of messages) {
  if (message.type === 'result') console.log(message.subtype === 'success' ? message.result : `It failed: ${message.subtype}`)
}
