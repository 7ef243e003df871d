// What a person and a model do in VS Code, done by an extension: "Start" above a server of .vscode/mcp.json, then a
// call of one of its tools. What came of it goes as JSON to the port that DRIVER names.
const net = require("node:net");
const { setTimeout } = require("node:timers/promises");
const vscode = require("vscode");

const { port, tool, input } = JSON.parse(process.env.DRIVER);

// The folder's servers are found some time after the window has opened, and nothing says when.
const TRIES = 300;
const PAUSE = 200; // milliseconds

async function drive() {
  const start = { autoTrustChanges: true, waitForLiveTools: true }; // the click on "Start" is the trust
  for (let tries = 0; tries < TRIES && !offered().includes(tool); tries++) {
    await vscode.commands.executeCommand("workbench.mcp.startServer", "*", start);
    await setTimeout(offered().includes(tool) ? 0 : PAUSE);
  }
  const tools = offered();
  if (!tools.includes(tool)) throw new Error(`${tool} is not among the tools: ${tools}`);
  const { content } = await vscode.lm.invokeTool(tool, { input, toolInvocationToken: undefined });
  return { tools, content: content.map(told) };
}

const offered = () => vscode.lm.tools.map((each) => each.name);

function told(part) {
  if (part instanceof vscode.LanguageModelTextPart) return { text: part.value };
  return { mime: part.mimeType, data: Buffer.from(part.data).toString("base64") };
}

exports.activate = async () => {
  const outcome = await drive().catch((error) => ({ error: String(error?.stack ?? error) }));
  net.connect(port, "127.0.0.1").end(JSON.stringify(outcome));
};
