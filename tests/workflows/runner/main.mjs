// Runs a workflow file as GitHub's runner does, as far as the workflows of this project can tell.
//
// Reads a request on standard input and writes what came of it to standard output, both JSON;
// tests/workflows/running.py has the words of both.  Files are read by GitHub's own parser,
// expressions evaluated by GitHub's own package; what this does not know, it refuses.
import fs from "node:fs";
import { Refused, events, readWorkflow } from "./files.mjs";
import { runJobs } from "./jobs.mjs";

async function main() {
  const request = JSON.parse(fs.readFileSync(0, "utf8"));
  const workflow = await readWorkflow(request.workflow);
  if (!events(workflow).includes(request.event_name))
    throw new Refused(`${request.workflow} is not started by ${request.event_name}`);
  request.github.workflow = workflow.name ?? request.workflow;
  return { jobs: runJobs(workflow, request) };
}

main().then(
  (found) => process.stdout.write(JSON.stringify(found)),
  (error) => {
    process.stderr.write(`${error instanceof Refused ? error.message : error.stack}\n`);
    process.exitCode = 2;
  },
);
