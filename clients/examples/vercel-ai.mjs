// An agent with the Vercel AI SDK: the tools of the box come from /mcp.
import { createMCPClient } from '@ai-sdk/mcp'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, tool } from 'ai'
import { settings, submitForm } from './site.mjs'

const { mcp, model, task, instructions } = settings()
const mail = await createMCPClient({ transport: { type: 'http', ...mcp } })
try {
  const provider = createOpenAICompatible({ name: 'model', baseURL: model.url, apiKey: model.key })
  const site = tool({ description: submitForm.description, inputSchema: submitForm.input, execute: submitForm.run })
  const { text } = await generateText({
    model: provider(model.name),
    instructions: `${instructions} ${mail.instructions ?? ''}`,
    prompt: task,
    tools: { ...(await mail.tools()), [submitForm.name]: site },
    stopWhen: isStepCount(30),
  })
  console.log(text)
} finally {
  await mail.close()
}
