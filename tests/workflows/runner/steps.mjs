// Steps: scripts, actions of this repository in a container or composite, and others emulated.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { emulated } from "./emulated.mjs";
import { CommandFiles, commands } from "./commands.mjs";
import { asText, filled, holds, text, texts } from "./expressions.mjs";
import { Refused, readAction } from "./files.mjs";

const TIMEOUT_MS = 900_000;
const SHELLS = {
  "": (script) => ["bash", "-e", script],
  bash: (script) => ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
  sh: (script) => ["sh", "-e", script],
  python: (script) => ["python3", script],
};
const IN_CONTAINER = {
  temp: "/github/runner_temp",
  home: "/github/home",
  workflow: "/github/workflow",
  workspace: "/github/workspace",
};

// Runs steps in order.  `scope` has the contexts, the variables and what failed so far; of a
// composite action it is one of its own.
export function runSteps(steps, scope, job) {
  const done = [];
  for (const step of steps) {
    Object.assign(scope.contexts.env, job.variables); // what steps before wrote to GITHUB_ENV
    const name = text(step.name ?? step.uses ?? String(step.run).split("\n")[0], scope.contexts, scope.failed);
    if (!holds(step.if, scope.contexts, scope.failed)) {
      note(step, { outcome: "skipped", conclusion: "skipped", outputs: {} }, scope);
      done.push({ id: step.id ?? null, name, outcome: "skipped", conclusion: "skipped" });
      continue;
    }
    const ended = runStep(step, scope, job);
    const outcome = ended.exit_code ? "failure" : "success";
    const forgiven = asText(filled(step["continue-on-error"] ?? false, scope.contexts)) === "true";
    const conclusion = forgiven ? "success" : outcome;
    note(step, { outcome, conclusion, outputs: ended.outputs }, scope);
    scope.failed ||= conclusion === "failure";
    done.push({ id: step.id ?? null, name, outcome, conclusion, ...ended });
  }
  return done;
}

function note(step, result, scope) {
  if (step.id) scope.contexts.steps[step.id] = result;
}

function runStep(step, scope, job) {
  const env = { ...scope.contexts.env, ...texts(step.env, scope.contexts, scope.failed) };
  const contexts = { ...scope.contexts, env };
  const files = new CommandFiles(path.join(job.folder, `file_commands_${++job.count}`));
  job.give(files.folder);
  const at = { step, scope, contexts, env, files, job };
  const ended = { stdout: "", stderr: "", outputs: {}, ...(step.uses ? uses(at) : runs(at)) };
  Object.assign(ended.outputs, files.pairs("GITHUB_OUTPUT"));
  Object.assign(job.variables, files.pairs("GITHUB_ENV"));
  job.path.unshift(...files.read("GITHUB_PATH").split("\n").filter(Boolean).reverse());
  return {
    ...ended,
    summary: (ended.summary ?? "") + files.read("GITHUB_STEP_SUMMARY"),
    files: { env: files.read("GITHUB_ENV"), path: files.read("GITHUB_PATH"), state: files.read("GITHUB_STATE") },
    commands: ended.commands ?? commands(ended.stdout + "\n" + ended.stderr),
  };
}

// --- Scripts ---------------------------------------------------------------------------------

function runs({ step, scope, contexts, env, files, job }) {
  const shell = step.shell ?? scope.defaults?.shell ?? "";
  if (!(shell in SHELLS)) throw new Refused(`no such shell here: ${shell}`);
  const script = path.join(job.folder, `script_${job.count}`);
  fs.writeFileSync(script, text(step.run, contexts, scope.failed));
  const folder = text(step["working-directory"] ?? scope.defaults?.["working-directory"] ?? ".", contexts);
  const variables = { ...job.host(), ...env, ...job.github(contexts), ...files.variables() };
  if (scope.action) variables.GITHUB_ACTION_PATH = scope.action;
  return start(SHELLS[shell](script), { cwd: path.resolve(job.at.workspace, folder), env: variables });
}

export function start([program, ...given], options) {
  const done = spawnSync(program, given, {
    ...{ encoding: "utf8", timeout: TIMEOUT_MS, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] },
    ...options,
  });
  if (done.error) throw done.error;
  return { exit_code: done.status ?? 128, stdout: done.stdout, stderr: done.stderr };
}

// --- Actions ---------------------------------------------------------------------------------

function uses(at) {
  const { step, job, contexts, scope } = at;
  const [name, version] = step.uses.split("@");
  const given = texts(step.with, contexts, scope.failed);
  const own = job.request.actions?.[name];
  const folder = own ?? local(name, job);
  if (folder === null) {
    if (!version) throw new Refused(`${name} is named without a version`);
    return emulated(name, given, at);
  }
  const action = readAction(folder);
  const inputs = withDefaults(action.inputs ?? {}, given, contexts, name);
  switch (action.runs.using) {
    case "docker":
      return inContainer(action, folder, inputs, at);
    case "composite":
      return composite(action, folder, inputs, at);
    default:
      throw new Refused(`${name} runs with ${action.runs.using}`);
  }
}

function local(name, job) {
  if (name.startsWith("./")) return path.join(job.at.workspace, name);
  if (name.startsWith("$/")) return path.join(job.request.repository, name.slice(2));
  return null;
}

function withDefaults(declared, given, contexts, name) {
  const inputs = {};
  for (const [key, { default: value = "" }] of Object.entries(declared)) inputs[key] = text(value, contexts);
  for (const [key, value] of Object.entries(given)) {
    if (!(key in declared)) throw new Refused(`unexpected input ${key} of ${name}`);
    inputs[key] = value;
  }
  return inputs;
}

function composite(action, folder, inputs, { job, contexts, env }) {
  const inner = { contexts: { ...contexts, inputs, env: { ...env }, steps: {} }, failed: false, action: folder };
  inner.contexts.github = { ...contexts.github, action_path: folder };
  const done = runSteps(action.runs.steps, inner, job);
  const outputs = {};
  for (const [name, { value }] of Object.entries(action.outputs ?? {})) outputs[name] = text(value, inner.contexts);
  const whole = (key) => done.map((each) => each[key] ?? "").join("");
  return {
    exit_code: inner.failed ? (done.find((each) => each.conclusion === "failure")?.exit_code ?? 1) : 0,
    ...{ outputs, stdout: whole("stdout"), stderr: whole("stderr"), summary: whole("summary") },
    commands: done.flatMap((each) => each.commands ?? []),
  };
}

// As ContainerActionHandler and ContainerOperationProvider of the runner do it: each variable by
// its name alone, the value in the environment of the client.
function inContainer(action, folder, inputs, { job, contexts, env, files, scope }) {
  const inner = { ...contexts, inputs };
  const variables = { ...texts(action.runs.env, inner), ...env };
  for (const [name, value] of Object.entries(inputs)) variables[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`] = value;
  const seen = { ...IN_CONTAINER, event: "/github/workflow/event.json" };
  Object.assign(variables, job.github(contexts, seen), files.variables("/github/file_commands"));
  Object.assign(variables, { RUNNER_TEMP: seen.temp, GITHUB_ACTIONS: "true", CI: "true" });
  for (const [name, value] of Object.entries(variables)) variables[name] = translated(value, job);
  const command = ["docker", "run", "--rm", "--network", job.request.network ?? "none"];
  command.push("--workdir", seen.workspace);
  for (const name of Object.keys(variables)) command.push("-e", name);
  command.push("-e", `HOME=${seen.home}`);
  for (const [name, place] of Object.entries(IN_CONTAINER)) command.push("-v", `${job.at[name]}:${place}`);
  command.push("-v", `${files.folder}:/github/file_commands`);
  const socket = (process.env.DOCKER_HOST ?? "").replace("unix://", "") || "/var/run/docker.sock";
  command.push("-v", `${socket}:/var/run/docker.sock`);
  if (action.runs.entrypoint) command.push("--entrypoint", action.runs.entrypoint);
  command.push(image(action, folder, job), ...(action.runs.args ?? []).map((each) => text(each, inner, scope.failed)));
  return start(command, { cwd: job.at.workspace, env: { ...process.env, ...variables } });
}

// Where a value names a folder of the machine, it names that of the container instead.
function translated(value, job) {
  const places = Object.entries(IN_CONTAINER).map(([name, place]) => [job.at[name], place]);
  return places.reduce((found, [from, to]) => found.replaceAll(from, to), String(value));
}

function image(action, folder, job) {
  const named = action.runs.image;
  if (named.startsWith("docker://")) return named.slice("docker://".length);
  if (job.request.image) return job.request.image; // built already, from this Dockerfile
  const tag = "ci-eval-workflows:built";
  const build = ["docker", "build", "--quiet", "--network", "host", "--tag", tag, "--file", path.join(folder, named)];
  const done = start([...build, folder], { env: { ...process.env, DOCKER_BUILDKIT: "1" } });
  if (done.exit_code) throw new Refused(`the image of ${folder} is not built: ${done.stderr}`);
  return tag;
}
