// Starts `neural lsp` and lets it speak for .neural files and for experiments in YAML.

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...words] = workspace.getConfiguration("neural").get("command");
  const server = { command, args: [...words, "lsp"] };
  const documentSelector = [{ language: "neural" }, { language: "yaml" }];
  client = new LanguageClient("neural", "Neural", server, { documentSelector });
  try {
    await client.start();
  } catch (problem) {
    const way = 'Is it installed (pip install "neural[lsp]"), and does the setting neural.command name it?';
    window.showErrorMessage(`${[command, ...words].join(" ")} lsp could not be started. ${way} (${problem.message})`);
  }
}

async function stop() {
  const old = client;
  client = undefined;
  await old?.stop().catch(() => undefined); // one that never began cannot be stopped
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("neural.restart", restart),
    workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("neural.command") && restart()),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
