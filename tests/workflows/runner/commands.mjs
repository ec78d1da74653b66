// What a step tells the runner: files that it writes, and lines that it prints.
import fs from "node:fs";
import path from "node:path";

const FILES = {
  GITHUB_ENV: "set_env",
  GITHUB_OUTPUT: "set_output",
  GITHUB_PATH: "add_path",
  GITHUB_STATE: "save_state",
  GITHUB_STEP_SUMMARY: "step_summary",
};

export class CommandFiles {
  constructor(folder) {
    this.folder = folder;
    fs.mkdirSync(folder, { recursive: true });
    for (const name of Object.values(FILES)) fs.writeFileSync(path.join(folder, name), "");
  }

  // The variables that say where they are, for a process that sees the folder as `seen`.
  variables(seen = this.folder) {
    return Object.fromEntries(Object.entries(FILES).map(([name, file]) => [name, `${seen}/${file}`]));
  }

  read(variable) {
    return fs.readFileSync(path.join(this.folder, FILES[variable]), "utf8");
  }

  pairs(variable) {
    return pairs(this.read(variable));
  }
}

// `name=value` lines, and values of many lines between `name<<END` and `END`.
export function pairs(content) {
  const found = {};
  const lines = content.split(/\r?\n/);
  while (lines.length) {
    const line = lines.shift();
    if (!line) continue;
    const equals = line.indexOf("=");
    const heredoc = line.indexOf("<<");
    if (heredoc > 0 && (equals < 0 || heredoc < equals)) {
      const end = line.slice(heredoc + 2);
      const last = lines.indexOf(end);
      if (!end || last < 0 || last === lines.length - 1)
        throw new Error(`Invalid value. Matching delimiter not found ${JSON.stringify(end)}`);
      found[line.slice(0, heredoc)] = lines.splice(0, last + 1).slice(0, -1).join("\n");
    } else if (equals > 0) found[line.slice(0, equals)] = line.slice(equals + 1);
    else throw new Error(`Invalid format ${JSON.stringify(line)}`);
  }
  return found;
}

const COMMANDS = new Set([
  ...["add-mask", "add-matcher", "debug", "echo", "endgroup", "error", "group", "notice"],
  ...["remove-matcher", "save-state", "set-env", "set-output", "add-path", "warning"],
]);
const LINE = /^\s*::(\S*?)(?: (.*?))?::(.*)$/;
const LEGACY = /##\[([^\s\]]+)(?: ([^\]]*))?\](.*)$/;

// The commands in what a step printed, by the rules of the runner (ActionCommand.cs,
// ActionCommandManager.cs): one at the beginning of a line, one of the older form anywhere in it,
// and none between `::stop-commands::TOKEN` and `::TOKEN::`.
export function commands(printed) {
  const found = [];
  let stopped = null;
  for (const line of printed.split(/\r?\n/)) {
    const [, name, properties = "", message] = LINE.exec(line) ?? LEGACY.exec(line) ?? [];
    if (name === undefined) continue;
    if (stopped !== null) {
      if (name === stopped) stopped = null;
    } else if (name.toLowerCase() === "stop-commands") stopped = message;
    else if (COMMANDS.has(name.toLowerCase()))
      found.push({ command: name, properties: split(properties), message: unescaped(message) });
  }
  return found;
}

function split(properties) {
  return Object.fromEntries(
    properties
      .trim()
      .split(/[,;]/)
      .filter((each) => each.includes("="))
      .map((each) => [each.slice(0, each.indexOf("=")).trim(), unescaped(each.slice(each.indexOf("=") + 1))]),
  );
}

function unescaped(value) {
  const meant = { "%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%5D": "]", "%3B": ";" };
  return value.replace(/%(?:25|0D|0A|3A|2C|5D|3B)/g, (each) => meant[each]);
}
