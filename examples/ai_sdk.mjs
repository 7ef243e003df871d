// An AI SDK agent whose images are prepared by a running `sightline serve`. Needs: npm install ai @ai-sdk/openai
//
// node examples/ai_sdk.mjs "What is wrong in screenshot.png?"
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const SIGHTLINE = process.env.SIGHTLINE_URL ?? "http://127.0.0.1:8790";

// Called before each step: returns the messages as this model should get them. The SDK's own history stays as it is.
export async function prepareStep({ messages, model }) {
  const asBase64 = function (key, value) {
    return this[key] instanceof Uint8Array ? Buffer.from(this[key]).toString("base64") : value;
  };
  const request = { body: messages, wire: "model_message", model: `${model.provider.split(".")[0]}/${model.modelId}` };
  const answer = await fetch(`${SIGHTLINE}/sightline/prepare`, { method: "POST", body: JSON.stringify(request, asBase64) });
  return answer.ok ? { messages: (await answer.json()).body } : {};
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { generateText, jsonSchema, stepCountIs, tool } = await import("ai");
  const { openai } = await import("@ai-sdk/openai");
  const view = tool({
    description: "See an image file.",
    inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
    execute: async ({ path }) => (await readFile(path)).toString("base64"),
    toModelOutput: ({ output }) => ({ type: "content", value: [{ type: "media", data: output, mediaType: "image/png" }] }),
  });
  const how = { model: openai("gpt-5.4"), tools: { view }, stopWhen: stepCountIs(20), prepareStep };
  console.log((await generateText({ ...how, prompt: process.argv[2] })).text);
}
