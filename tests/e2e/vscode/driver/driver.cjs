// What a person does in VS Code, done by an extension: "Start" above the server of .vscode/mcp.json, and a question to
// the agent of the chat. What came of it goes as JSON to the port that DRIVER names.
const net = require("node:net");
const { setTimeout } = require("node:timers/promises");
const vscode = require("vscode");

const { port, words, model } = JSON.parse(process.env.DRIVER);
const START = { autoTrustChanges: true, waitForLiveTools: true }; // the click on "Start" is the trust

// The folder's servers and the user's models are found some time after the window has opened, and nothing says when.
const TRIES = 300;
const PAUSE = 200; // milliseconds

async function until(what, there, attempt) {
  for (let tries = 0; tries < TRIES; tries++) {
    await attempt?.();
    if (await there()) return;
    await setTimeout(PAUSE);
  }
  throw new Error(`${what} never came`);
}

async function drive() {
  const run = vscode.commands.executeCommand;
  const served = () => vscode.lm.tools.some((tool) => tool.name.startsWith("mcp_"));
  await until("a tool of a server", served, () => run("workbench.mcp.startServer", "*", START));
  // VS Code turns its own chat off until somebody has signed in or, having a model of their own, turned it on.
  await run("workbench.extensions.action.enableAll");
  await until("the model", async () => (await vscode.lm.selectChatModels(model)).length > 0);
  const question = { query: words, mode: "agent", modelSelector: model, blockOnResponse: true };
  return await run("workbench.action.chat.open", question);
}

exports.activate = async () => {
  const outcome = await drive().catch((error) => ({ error: String(error?.stack ?? error) }));
  net.connect(port, "127.0.0.1").end(JSON.stringify(outcome));
};
