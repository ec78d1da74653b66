// What the actions of others do that workflows use beside ours, as far as a workflow can tell.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Refused } from "./files.mjs";

const OK = { exit_code: 0 };

const ACTIONS = {
  "actions/checkout": checkout,
  "actions/upload-artifact": upload,
  "actions/download-artifact": download,
  "actions/setup-python": setUpPython,
  "actions/setup-node": () => OK,
  "astral-sh/setup-uv": setUpUv,
};

export function emulated(name, given, at) {
  if (!(name in ACTIONS)) throw new Refused(`there is no emulation of ${name}`);
  return ACTIONS[name](given, at.job);
}

function failed(message) {
  return { exit_code: 1, stderr: `${message}\n` };
}

function checkout({ path: folder = ".", ref }, job) {
  const target = path.join(job.at.workspace, folder);
  const git = (...given) => execFileSync("git", ["-c", "safe.directory=*", "-C", target, ...given], { stdio: "pipe" });
  fs.cpSync(job.request.repository, target, { recursive: true, verbatimSymlinks: true });
  if (ref) git("checkout", "--quiet", "--force", ref);
  job.give(target);
  return OK;
}

// The paths that a `path` of several lines names; a line with `!` takes away, and `*` is known.
function named(lines, job) {
  const found = new Set();
  const tops = [];
  for (const line of lines.split("\n").map((each) => each.trim()).filter(Boolean)) {
    const wanted = path.resolve(job.at.workspace, line.replace(/^!/, ""));
    const [top] = /^[^*?[]*/.exec(wanted);
    const start = top === wanted ? wanted : path.dirname(`${top}x`);
    if (!line.startsWith("!")) tops.push(fs.statSync(start, { throwIfNoEntry: false })?.isFile() ? path.dirname(start) : start);
    const shape = new RegExp(`^${wanted.split(/(\*\*\/|\*)/).map(asPattern).join("")}(?:/.*)?$`);
    for (const file of walk(start).filter((each) => shape.test(each)))
      line.startsWith("!") ? found.delete(file) : found.add(file);
  }
  return { files: [...found], top: common(tops) };
}

function asPattern(part) {
  if (part === "**/") return "(?:.*/)?";
  return part === "*" ? "[^/]*" : part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
}

function walk(at) {
  if (!fs.existsSync(at)) return [];
  if (!fs.statSync(at).isDirectory()) return [at];
  return fs.readdirSync(at).flatMap((name) => walk(path.join(at, name)));
}

function upload(given, job) {
  const { name = "artifact", path: lines = "", "if-no-files-found": missing = "warn" } = given;
  const hidden = given["include-hidden-files"] === "true";
  const { files: all, top } = named(lines, job);
  const files = all.filter((each) => hidden || !path.relative(job.at.workspace, each).split("/").some((part) => part.startsWith(".")));
  if (!files.length) return missing === "error" ? failed(`No files were found with the provided path: ${lines}`) : OK;
  // Without an archive there is one file, which the artifact is named like, whatever the input says:
  // https://github.com/actions/upload-artifact#inputs
  const single = given.archive === "false";
  if (single && files.length > 1) return failed("an artifact without an archive is one file");
  const target = path.join(job.artifacts, single ? path.basename(files[0]) : name);
  if (fs.existsSync(target) && given.overwrite !== "true") return failed(`an artifact with this name already exists: ${name}`);
  for (const file of files) {
    const place = path.join(target, path.relative(top, file));
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.copyFileSync(file, place);
  }
  const id = String(fs.readdirSync(job.artifacts).length);
  const { server_url: server, repository, run_id: run } = job.request.github;
  const url = `${server}/${repository}/actions/runs/${run}/artifacts/${id}`;
  return { ...OK, outputs: { "artifact-id": id, "artifact-url": url } };
}

// The folder that all of these are in, or are.
function common(folders) {
  let top = folders[0];
  while (!folders.every((each) => `${each}/`.startsWith(`${top}/`))) top = path.dirname(top);
  return top;
}

function download(given, job) {
  const { name, pattern = "*", path: folder = ".", "merge-multiple": merged = "false" } = given;
  const shape = new RegExp(`^${pattern.split("*").map(asPattern).join(".*")}$`);
  const there = fs.existsSync(job.artifacts) ? fs.readdirSync(job.artifacts) : [];
  const found = there.filter((each) => (name ? each === name : shape.test(each)));
  if (name && !found.length) return failed(`Unable to download artifact(s): Artifact not found for name: ${name}`);
  for (const each of found) {
    const apart = name || merged === "true" ? "" : each;
    fs.cpSync(path.join(job.artifacts, each), path.join(job.at.workspace, folder, apart), { recursive: true });
  }
  job.give(job.at.workspace);
  return OK;
}

// A folder with a `python` of the machine's own, before all others in PATH.
function setUpPython(given, job) {
  const folder = path.join(job.folder, "hostedtoolcache", "python");
  fs.mkdirSync(folder, { recursive: true });
  const program = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
  for (const name of ["python", "python3"]) {
    // Not a link: a Python finds its libraries from where it really is.
    fs.writeFileSync(path.join(folder, name), `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 });
  }
  job.path.unshift(folder);
  return { ...OK, outputs: { "python-version": given["python-version"] ?? "" } };
}

function setUpUv(given, job) {
  const folder = path.join(job.folder, "hostedtoolcache", "uv");
  fs.mkdirSync(folder, { recursive: true });
  const program = execFileSync("sh", ["-c", "command -v uv"], { encoding: "utf8" }).trim();
  if (!fs.existsSync(path.join(folder, "uv"))) fs.symlinkSync(program, path.join(folder, "uv"));
  job.path.unshift(folder);
  return OK;
}
