// The AI SDK over Chat Completions: a tool returns a picture, which the SDK turns into JSON text with raw base64.
// node ai-sdk.mjs BASE MODEL PICTURE SHAPE STREAM
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(`${process.env.AGENTS}/`);
const load = (name) => import(pathToFileURL(from.resolve(name)).href);
const { generateText, streamText, jsonSchema, stepCountIs, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const [base, model, picture, shape, stream] = process.argv.slice(2);
const data = readFileSync(picture).toString("base64");
const shapes = {
  media: { type: "media", data, mediaType: "image/png" },
  file: { type: "file", mediaType: "image/png", data: { type: "data", data } },
};
const look = tool({
  description: "Reads a picture",
  inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } } }),
  execute: async ({ path }) => (shape === "json" ? { path, b64: data } : "read"),
  ...(shape === "json"
    ? {}
    : { toModelOutput: () => ({ type: "content", value: [{ type: "text", text: "Image read" }, shapes[shape]] }) }),
});
const provider = createOpenAICompatible({ name: "scripted", baseURL: `${base}/v1`, apiKey: "sk-test" });
const asked = {
  model: provider(model),
  prompt: "Read the picture and name its four quadrants",
  tools: { read: look },
  stopWhen: stepCountIs(4),
  maxRetries: 0,
  ...(process.env.PREPARE_STEP ? { prepareStep: (await import(process.env.PREPARE_STEP)).prepareStep } : {}),
};
if (stream === "stream") {
  const result = streamText(asked);
  for await (const piece of result.textStream) process.stdout.write(piece);
} else {
  process.stdout.write((await generateText(asked)).text);
}
