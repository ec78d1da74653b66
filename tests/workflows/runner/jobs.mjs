// Jobs: in the order of their needs, each on a machine of its own, once for each combination of
// its matrix.
import fs from "node:fs";
import path from "node:path";
import { asText, filled, holds, texts } from "./expressions.mjs";
import { Refused } from "./files.mjs";
import { combinations } from "./matrix.mjs";
import { runSteps } from "./steps.mjs";

export function runJobs(workflow, request) {
  const done = {};
  const waiting = Object.entries(workflow.jobs);
  const results = [];
  while (waiting.length) {
    const at = waiting.findIndex(([, job]) => needs(job).every((id) => id in done));
    if (at < 0) throw new Refused(`jobs that need each other: ${waiting.map(([id]) => id)}`);
    const [[id, job]] = waiting.splice(at, 1);
    const ended = runJob(id, job, workflow, request, done);
    const worst = ["failure", "skipped"].find((each) => ended.some(({ result }) => result === each));
    done[id] = { result: worst ?? "success", outputs: Object.assign({}, ...ended.map((each) => each.outputs)) };
    results.push(...ended);
  }
  return results;
}

function needs(job) {
  return [job.needs ?? []].flat();
}

function runJob(id, job, workflow, request, done) {
  const github = { ...request.github, event: request.event, event_name: request.event_name, job: id };
  const needed = Object.fromEntries(needs(job).map((each) => [each, done[each]]));
  const contexts = { github, needs: needed, vars: request.vars ?? {}, inputs: request.inputs ?? {} };
  const failed = Object.values(needed).some(({ result }) => result !== "success");
  if (!holds(job.if, contexts, failed)) return [{ id, matrix: {}, result: "skipped", outputs: {}, steps: [] }];
  if (job.uses) throw new Refused(`the job ${id} calls another workflow`);
  const found = combinations(filled(job.strategy?.matrix, contexts));
  return found.map((matrix, index) => {
    const strategy = {
      "fail-fast": job.strategy?.["fail-fast"] ?? true,
      "job-index": index,
      "job-total": found.length,
      "max-parallel": job.strategy?.["max-parallel"] ?? found.length,
    };
    // Without a strategy there is no matrix; toJSON then says null.
    const chosen = { strategy, matrix: job.strategy?.matrix ? matrix : null };
    return runOne(id, job, workflow, request, { ...contexts, ...chosen });
  });
}

function runOne(id, job, workflow, request, contexts) {
  const machine = new Machine(request);
  Object.assign(contexts, { secrets: request.secrets ?? {}, runner: machine.runner, job: { status: "success" }, steps: {} });
  contexts.github = { ...contexts.github, ...machine.told };
  contexts.env = { ...texts(workflow.env, contexts) };
  Object.assign(contexts.env, texts(job.env, contexts));
  const defaults = { ...workflow.defaults?.run, ...job.defaults?.run };
  const scope = { contexts, failed: false, defaults };
  const steps = runSteps(job.steps, scope, machine);
  const outputs = texts(job.outputs, contexts, scope.failed);
  const forgiven = asText(filled(job["continue-on-error"] ?? false, contexts)) === "true";
  const result = scope.failed && !forgiven ? "failure" : "success";
  return { id, matrix: contexts.matrix ?? {}, result, outputs, steps, workspace: machine.at.workspace };
}

// The machine that a job gets: its folders, the variables of the runner, and PATH.
class Machine {
  constructor(request) {
    this.request = request;
    this.folder = fs.mkdtempSync(path.join(request.folder, "job-"));
    this.artifacts = path.join(request.folder, "artifacts");
    this.at = Object.fromEntries(
      ["temp", "home", "workflow", "workspace"].map((name) => [name, path.join(this.folder, name)]),
    );
    for (const place of [...Object.values(this.at), this.artifacts]) fs.mkdirSync(place, { recursive: true });
    fs.writeFileSync(path.join(this.at.workflow, "event.json"), JSON.stringify(request.event));
    this.give(this.folder);
    this.count = 0;
    this.path = [];
    this.variables = {};
    this.runner = { os: "Linux", arch: "X64", temp: this.at.temp, name: "test", environment: "github-hosted" };
    this.told = { workspace: this.at.workspace, event_path: path.join(this.at.workflow, "event.json") };
  }

  // To the user of GitHub's runners all belongs; only root can see to it.
  give(folder) {
    const owner = this.request.owner;
    if (owner === undefined || process.geteuid() !== 0) return;
    fs.lchownSync(folder, owner, owner);
    if (!fs.lstatSync(folder).isDirectory()) return;
    for (const name of fs.readdirSync(folder)) this.give(path.join(folder, name));
  }

  // What a process on the machine itself has of it: nothing of whoever runs this but what is named.
  host() {
    const kept = ["LANG", "SSL_CERT_FILE", "UV_CACHE_DIR", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_OFFLINE", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "PIP_CERT", "DOCKER_HOST"];
    const own = Object.fromEntries(kept.filter((name) => name in process.env).map((name) => [name, process.env[name]]));
    return { ...own, HOME: this.at.home, PATH: [...this.path, process.env.PATH].join(":") };
  }

  // The variables of the runner, https://docs.github.com/en/actions/reference/workflows-and-actions/variables
  github({ github }, seen = { ...this.at, event: this.told.event_path }) {
    const found = { CI: "true" };
    for (const [name, value] of Object.entries(github))
      if (typeof value === "string" && name !== "token") found[`GITHUB_${name.toUpperCase()}`] = value;
    return {
      ...found,
      ...{ GITHUB_ACTIONS: "true", GITHUB_WORKSPACE: seen.workspace, GITHUB_EVENT_PATH: seen.event },
      ...{ RUNNER_OS: "Linux", RUNNER_ARCH: "X64", RUNNER_TEMP: seen.temp },
    };
  }
}
