// Workflows and actions: read as GitHub's own parser reads them, and refused as it refuses them.
import fs from "node:fs";
import path from "node:path";
import { NoOperationTraceWriter, convertWorkflowTemplate, parseWorkflow } from "@actions/workflow-parser";
import { convertActionTemplate, parseAction } from "@actions/workflow-parser/actions/index";
import YAML from "yaml";

export class Refused extends Error {}

const trace = new NoOperationTraceWriter();

function refuse(name, errors) {
  if (errors.length) throw new Refused(errors.map((each) => `${name}: ${each.message ?? each}`).join("\n"));
}

// The parser checks; the values are read here, for its own form of a step has no `with`.
export async function readWorkflow(file) {
  const content = fs.readFileSync(file, "utf8");
  const { context, value } = parseWorkflow({ name: file, content }, trace);
  if (value) await convertWorkflowTemplate(context, value);
  refuse(file, context.errors.getErrors());
  return YAML.parse(content);
}

export function readAction(folder) {
  const file = ["action.yml", "action.yaml"].map((name) => path.join(folder, name)).find(fs.existsSync);
  if (!file) throw new Refused(`${folder}: there is no action.yml`);
  const content = fs.readFileSync(file, "utf8");
  const { context, value } = parseAction({ name: file, content }, trace);
  if (value) convertActionTemplate(context, value);
  refuse(file, context.errors.getErrors());
  return YAML.parse(content);
}

// The events that start a workflow.
export function events(workflow) {
  const on = workflow.on;
  if (typeof on === "string") return [on];
  return Array.isArray(on) ? on : Object.keys(on);
}
