// Starts `neural lsp` as language server of .neural files and of experiments in YAML.

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = workspace.getConfiguration("neural").get("command");
  const server = { command, args: [...args, "lsp"] };
  const documentSelector = [{ language: "neural" }, { language: "yaml" }];
  client = new LanguageClient("neural", "Neural", server, { documentSelector });
  try {
    await client.start();
  } catch (error) {
    const hint = 'Is it installed (pip install "neural-lab[lsp]"), and does the setting neural.command name it?';
    window.showErrorMessage(`${[command, ...args].join(" ")} lsp could not be started. ${hint} (${error.message})`);
  }
}

async function stop() {
  const previous = client;
  client = undefined;
  await previous?.stop().catch(() => undefined); // stop() rejects if the client never started
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
