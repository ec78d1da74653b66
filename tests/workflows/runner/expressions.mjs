// Expressions, evaluated by GitHub's own package.
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";

const WHOLE = /^\s*\$\{\{((?:(?!\}\}).)*)\}\}\s*$/s;
const PART = /\$\{\{(.*?)\}\}/gs;
const STATUS = /\b(?:success|failure|always|cancelled)\s*\(/i;

function asData(value) {
  if (value === null || value === undefined) return new data.Null();
  if (Array.isArray(value)) return new data.Array(...value.map(asData));
  if (typeof value === "object")
    return new data.Dictionary(
      ...Object.entries(value).map(([key, item]) => ({ key, value: asData(item) })),
    );
  if (typeof value === "number") return new data.NumberData(value);
  if (typeof value === "boolean") return new data.BooleanData(value);
  return new data.StringData(String(value));
}

function asValue(found) {
  switch (found.kind) {
    case data.Kind.Null:
      return null;
    case data.Kind.Array:
      return found.values().map(asValue);
    case data.Kind.Dictionary:
      return Object.fromEntries(found.pairs().map(({ key, value }) => [key, asValue(value)]));
    default:
      return found.value;
  }
}

// The value of an expression.  `failed` is what the status functions tell of.
export function evaluate(expression, contexts, failed = false) {
  const answers = { success: !failed, failure: failed, always: true, cancelled: false };
  const functions = Object.entries(answers).map(([name, answer]) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(answer),
  }));
  const { tokens } = new Lexer(expression).lex();
  const tree = new Parser(tokens, Object.keys(contexts), functions).parse();
  const named = new Map(functions.map((each) => [each.name, each]));
  return asValue(new Evaluator(tree, asData(contexts), named).evaluate());
}

// A value of a workflow file with its expressions filled in: a text that is one expression becomes
// what that is, every other text stays one.
export function filled(value, contexts, failed = false) {
  if (Array.isArray(value)) return value.map((item) => filled(item, contexts, failed));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, filled(item, contexts, failed)]),
    );
  if (typeof value !== "string") return value;
  const whole = WHOLE.exec(value);
  if (whole) return evaluate(whole[1], contexts, failed);
  return value.replace(PART, (_, part) => asText(evaluate(part, contexts, failed)));
}

// What a value is where a text is expected.
export function asText(value) {
  return asData(value).coerceString();
}

export function text(value, contexts, failed = false) {
  return asText(filled(value, contexts, failed));
}

export function texts(values, contexts, failed = false) {
  return Object.fromEntries(
    Object.entries(values ?? {}).map(([key, value]) => [key, text(value, contexts, failed)]),
  );
}

// Whether an `if` holds; one that asks for no status asks for success.
export function holds(condition, contexts, failed) {
  if (condition === undefined) return !failed;
  const whole = WHOLE.exec(String(condition));
  const asked = whole ? whole[1] : String(condition);
  const complete = STATUS.test(asked) ? asked : `success() && (${asked})`;
  const found = evaluate(complete, contexts, failed);
  return Boolean(found) && found !== "" && !Number.isNaN(found);
}
