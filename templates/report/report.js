// The list of all cases: filters the index, and inflates a chunk of trials when a case is opened.
// The state is in the fragment of the address. Text from a run is only ever set as text.

/**
 * @typedef {"p" | "f" | "e" | "s"} Status passed, failed, error, skipped
 * @typedef {{
 *   command: string, agents: string[], evalsets: string[], files: string[], criteria: string[],
 *   better: string[], thresholds: (number | null)[], status: string, marks: string, chunk: number,
 *   tags: [string, number[]][], before: Record<string, number[]>, changes: Record<string, [string, number | null, number | null, string][]>,
 *   scores: (number | null)[][], id: string[], agent: number[], evalset: number[], line: number[],
 *   gist: string[], seconds: number[], trials: number[][],
 * }} Index one entry of each column for each case
 * @typedef {{title: string, kind: string, lines: string[], words: [string, string[]][] | null}} Evidence
 * @typedef {{
 *   name: string, status: Status, value?: number,
 *   reason?: string, tokens?: [number, number, number], asked?: [number, number], evidence?: Evidence[], cites?: string[],
 * }} Score
 * @typedef {{name: string, args: string, result: string}} Call
 * @typedef {{
 *   user?: string, agent?: string, calls?: Call[], seconds?: number, model?: number,
 *   tool?: number, cost?: number, waits?: string[],
 * }} Turn
 * @typedef {{
 *   status: Status, kind?: "confirming" | "rerun", seconds?: number, attempts?: number,
 *   error?: [string, string], output?: string[], cut?: string, mocked?: string[], scores?: Score[], turns?: Turn[],
 * }} Trial
 */

const PAGE = 100;
const MOST_COLUMNS = 4;
/** @type {Record<string, string>} */
const WORDS = { p: "✔ passed", f: "✘ failed", e: "! not measured", s: "– skipped" };
/** @type {Record<string, string>} */
const MARKS = {
  b: "broke",
  w: "worse, perhaps noise",
  x: "now passes",
  k: "flaky",
  q: "exempt",
  "-": "",
};
/** What can be selected: its name in the address, its label, and the cases. @type {[string, string, (n: number) => boolean][]} */
const SHOWN = [
  ["", "all cases", () => true],
  ["failed", "failed", (n) => index.status[n] === "f"],
  ["errors", "not measured", (n) => index.status[n] === "e"],
  ["changed", "changed", (n) => "bwx".includes(index.marks[n] ?? "-")],
  ["flaky", "flaky", (n) => index.marks[n] === "k"],
  ["quarantined", "quarantined or accepted", (n) => index.marks[n] === "q"],
  ["passed", "passed", (n) => index.status[n] === "p"],
];
// Characters that hide, reorder or cover others, as in ci_eval/text/sanitize.py.
const UNSEEN =
  /(?![\t\n\u0600-\u06dd\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5/gu;
const PILES = /(\p{M}{4})\p{M}+/gu;

/** @type {Index} */
const index = JSON.parse(byId("index").textContent ?? "");
const query = the("q", HTMLInputElement);
/** Cases whose conversations hold a text, by that text. @type {Map<string, Set<number>>} */
const inside = new Map();
/** The rows of the list, in order. @type {number[]} */
let rows = [];

/**
 * The element with an id.
 * @template {HTMLElement} T @param {string} id @param {new () => T} kind @returns {T}
 */
function the(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** @param {string} id */
function byId(id) {
  return the(id, HTMLElement);
}

/** @param {string} text */
function seen(text) {
  return text.replace(UNSEEN, "\ufffd").replace(PILES, "$1\ufffd");
}

/**
 * An element with attributes and children; a text is a text node.
 * @param {string} tag @param {Record<string, string>} attributes @param {(Node | string)[]} children
 */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((each) => (typeof each === "string" ? seen(each) : each)));
  return made;
}

/** @param {number | null | undefined} value @param {number | null} beside must look different */
function shown(value, beside = null) {
  if (value === null || value === undefined) return "–";
  if (beside !== null && beside !== value && Math.abs(value - beside) < 1) {
    let digits = 3;
    while (digits < 9 && value.toFixed(digits) === beside.toFixed(digits)) digits++;
    return value.toFixed(digits);
  }
  return Math.abs(value) < 100 ? value.toFixed(3) : Math.round(value).toLocaleString();
}

/** @param {number} seconds */
function lasting(seconds) {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

// --- State -----------------------------------------------------------------------------------

function state() {
  return new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
}

/** @param {Record<string, string>} changes */
function address(changes) {
  const next = state();
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return `#${next}` === "#" ? "#=" : `#${next}`;
}

/** @param {number} n */
function nameOf(n) {
  const parts = [index.agents[index.agent[n] ?? 0], index.evalsets[index.evalset[n] ?? 0], index.id[n]];
  return parts.map((part) => encodeURIComponent(part ?? "")).join("/");
}

/** @param {Record<string, string>} changes */
function go(changes) {
  history.replaceState(null, "", address(changes));
  draw();
}

// --- Trials ----------------------------------------------------------------------------------

/** @param {string} packed @returns {Promise<Trial[]>} */
async function inflated(packed) {
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** @param {number} number @returns {Promise<Trial | undefined>} */
async function trial(number) {
  const place = Math.floor(number / 2);
  const found = document.getElementById(`chunk-${2 * Math.floor(place / index.chunk) + (number % 2)}`);
  return found ? (await inflated(found.textContent ?? ""))[place % index.chunk] : undefined;
}

/** Find the cases whose conversations or evidence hold a text. @param {string} text */
async function searchInside(text) {
  const needle = text.toLowerCase();
  /** @type {Map<number, number>} */
  const cases = new Map();
  index.trials.forEach((numbers, n) => {
    for (const number of [...numbers, ...(index.before[n] ?? [])]) cases.set(number, n);
  });
  const found = new Set();
  for (const chunk of document.querySelectorAll('script[id^="chunk-"]')) {
    const number = Number(chunk.id.slice("chunk-".length));
    const first = (number - (number % 2)) * index.chunk + (number % 2);
    (await inflated(chunk.textContent ?? "")).forEach((each, place) => {
      if (JSON.stringify(each).toLowerCase().includes(needle)) found.add(cases.get(first + 2 * place));
    });
  }
  inside.set(needle, found);
}

// --- The list --------------------------------------------------------------------------------

/** The most serious cases come first. @param {number} n */
function rank(n) {
  if (index.marks[n] === "b") return 0;
  const status = "efps".indexOf(index.status[n] ?? "s");
  return index.marks[n] === "w" ? 2 : status < 2 ? 1 : 3 + status;
}

/** @param {URLSearchParams} at */
function found(at) {
  const text = (at.get("q") ?? "").toLowerCase();
  const [agent, evalset] = [at.get("agent"), at.get("evalset")];
  const criterion = index.criteria.indexOf(at.get("criterion") ?? "");
  const accepts = SHOWN.find(([each]) => each === at.get("show"))?.[2];
  const tag = at.get("tag");
  const tagged = tag ? new Set(index.tags.find(([each]) => each === tag)?.[1]) : null;
  const within = inside.get(text);
  const result = [];
  for (let n = 0; n < index.id.length; n += 1) {
    if (accepts && !accepts(n)) continue;
    if (tagged && !tagged.has(n)) continue;
    if (agent && index.agents[index.agent[n] ?? 0] !== agent) continue;
    if (evalset && index.evalsets[index.evalset[n] ?? 0] !== evalset) continue;
    if (criterion >= 0 && index.scores[criterion]?.[n] === null) continue;
    const isNamed = () => `${index.id[n]}\n${index.gist[n]}`.toLowerCase().includes(text);
    if (text && !isNamed() && !within?.has(n)) continue;
    result.push(n);
  }
  return ordered(result, at.get("sort") ?? "");
}

/** @param {number[]} numbers @param {string} by */
function ordered(numbers, by) {
  const isDown = by.startsWith("-");
  const key = isDown ? by.slice(1) : by;
  const scores = index.scores[index.criteria.indexOf(key.replace(/^score /, ""))];
  /** @param {number} n @returns {number | string} */
  const value = (n) => {
    if (key === "case") return index.id[n] ?? "";
    if (key === "seconds") return index.seconds[n] ?? 0;
    return scores ? (scores[n] ?? Number.POSITIVE_INFINITY) : rank(n);
  };
  const sign = isDown ? -1 : 1;
  const pairs = numbers.map((n) => ({ n, value: value(n) }));
  pairs.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.n - b.n));
  return pairs.map((each) => each.n);
}

/** @param {URLSearchParams} at */
function drawList(at) {
  rows = found(at);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  const page = Math.min(Math.max(Number(at.get("page")) || 1, 1), pages);
  const chosen = index.criteria.indexOf(at.get("criterion") ?? "");
  const columns = index.criteria.map((_, number) => number).slice(0, MOST_COLUMNS);
  const shownColumns = chosen >= 0 ? [chosen] : columns;
  const table = byId("list");
  table.children[0]?.replaceChildren(headings(at, shownColumns));
  table.children[1]?.replaceChildren(
    ...rows.slice((page - 1) * PAGE, page * PAGE).map((n) => row(n, shownColumns)),
  );
  const text = at.get("q");
  const deep = text && !inside.has(text.toLowerCase()) ? " Enter searches conversations, too." : "";
  const lost = at.get("case") ? "There is no such case in this report. " : "";
  byId("found").textContent =
    `${lost}${rows.length.toLocaleString()} of ${index.id.length.toLocaleString()} cases.${deep}`;
  const near = [1, page - 1, page, page + 1, pages].filter((each) => each >= 1 && each <= pages);
  byId("pages").replaceChildren(
    ...(pages === 1 ? [] : [...new Set(near)]).flatMap((each) => [
      make(
        "a",
        { href: address({ page: String(each) }), ...(each === page ? { "aria-current": "page" } : {}) },
        each === page ? `page ${each} of ${pages}` : `${each}`,
      ),
      " ",
    ]),
  );
}

/** @param {URLSearchParams} at @param {number[]} columns */
function headings(at, columns) {
  const now = at.get("sort") ?? "";
  /** @param {string} label @param {string} key @param {string} kind */
  const heading = (label, key, kind = "") => {
    const is = now === key ? "ascending" : now === `-${key}` ? "descending" : "none";
    const button = make("button", { type: "button" }, `${label}${{ ascending: " ↑", descending: " ↓", none: "" }[is]}`);
    button.onclick = () => go({ sort: is === "ascending" ? `-${key}` : key, page: "" });
    return make("th", { scope: "col", class: kind, "aria-sort": is }, button);
  };
  return make(
    "tr",
    {},
    heading("Status", "", ""),
    heading("Case", "case"),
    make("th", { scope: "col" }, "Asked"),
    ...columns.map((each) => heading(index.criteria[each] ?? "", `score ${index.criteria[each]}`, "num")),
    heading("Time", "seconds", "num"),
  );
}

/** @param {number} n @param {number[]} columns */
function row(n, columns) {
  const status = index.status[n] ?? "s";
  const mark = MARKS[index.marks[n] ?? "-"];
  const place = [
    index.agents.length > 1 ? index.agents[index.agent[n] ?? 0] : "",
    index.evalsets.length > 1 ? index.evalsets[index.evalset[n] ?? 0] : "",
  ].filter(Boolean);
  return make(
    "tr",
    {},
    make("td", {}, make("span", { class: `mark s-${status}` }, WORDS[status] ?? ""), ...(mark ? [make("br"), make("small", {}, mark)] : [])),
    make("th", { scope: "row" }, make("a", { href: address({ case: nameOf(n), turn: "" }) }, index.id[n] || "(no name)"), ...(place.length ? [make("br"), make("small", {}, place.join(" · "))] : [])),
    make("td", {}, index.gist[n] ?? ""),
    ...columns.map((each) => make("td", { class: "num" }, shown(index.scores[each]?.[n]))),
    make("td", { class: "num" }, lasting(index.seconds[n] ?? 0)),
  );
}

// --- One case --------------------------------------------------------------------------------

/** @param {number} n */
async function drawCase(n) {
  const section = byId("case");
  const file = index.files[index.evalset[n] ?? 0] ?? "";
  const status = index.status[n] ?? "s";
  const changes = index.changes[n] ?? [];
  const trials = await Promise.all((index.trials[n] ?? []).map(trial));
  const before = await Promise.all((index.before[n] ?? []).map(trial));
  const agent = index.agents[index.agent[n] ?? 0] ?? "";
  const evalset = index.evalsets[index.evalset[n] ?? 0] ?? "";
  const command = [
    index.command,
    index.agents.length > 1 ? `--agent ${quoted(agent)}` : "",
    index.evalsets.length > 1 ? `--evalset ${quoted(evalset)}` : "",
    `--case ${quoted(index.id[n] ?? "")}`,
  ];
  const missing = trials.filter((each) => !each).length;
  const first = Math.max(0, trials.findIndex((each) => each && each.status === status));
  const heading = make("h2", { tabindex: "-1" }, index.id[n] || "(no name)");
  const copy = make("button", { type: "button", "data-copy": "reproduce" }, "Copy");
  section.replaceChildren(
    make("p", {}, make("a", { href: address({ case: "", turn: "" }) }, "← all cases")),
    heading,
    make("p", {}, make("span", { class: `mark s-${status}` }, WORDS[status] ?? ""), ` · ${agent} on ${evalset}`, make("span", { class: "faint" }, ` · ${file}${index.line[n] ? `:${index.line[n]}` : ""}`)),
    make("p", {}, "Reproduce it: ", make("code", { id: "reproduce" }, command.filter(Boolean).join(" ")), " ", copy),
    ...(changes.length ? [changed(changes)] : []),
    make(
      "div",
      { class: before.length ? "arms" : "" },
      make("div", {}, make("h3", {}, before.length ? "With this change" : "Trials"), ...spreads(trials), ...drawn(trials, first)),
      ...(before.length ? [make("div", {}, make("h3", {}, "Before this change"), ...spreads(before), ...drawn(before, 0))] : []),
    ),
    ...(missing ? [make("p", {}, `The details of ${missing} of its trials are left out to keep this file small; see run.json and traces.jsonl beside it.`)] : []),
  );
  const turn = state().get("turn");
  const target = turn ? section.querySelector(`[data-turn="${CSS.escape(turn)}"]`) : null;
  if (target) target.scrollIntoView();
  else scrollTo(0, section.offsetTop);
  heading.focus({ preventScroll: true });
}

/** @param {string} text */
function quoted(text) {
  return /^[\w.@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** @param {[string, number | null, number | null, string][]} changes */
function changed(changes) {
  return make(
    "div",
    { class: "wide" },
    make("h3", {}, "Compared with the baseline"),
    make(
      "ul",
      {},
      ...changes.map(([criterion, before, now, trials]) =>
        make("li", {}, make("code", {}, criterion), ` ${shown(before)} → ${shown(now)}${trials ? `: ${trials}` : ""}`),
      ),
    ),
  );
}

/** The range of each criterion over several trials. @param {(Trial | undefined)[]} trials */
function spreads(trials) {
  /** @type {Map<string, number[]>} */
  const values = new Map();
  for (const { name, value } of trials.flatMap((each) => each?.scores ?? [])) {
    if (value !== undefined) values.set(name, [...(values.get(name) ?? []), value]);
  }
  const several = [...values].filter(([, found]) => found.length > 1);
  const items = several.map(([name, found]) => {
    const [low, high] = [Math.min(...found), Math.max(...found)];
    const range = low === high ? shown(low) : `${shown(low)} to ${shown(high)}`;
    return make("li", {}, make("code", {}, name), ` ${range} in ${found.length} trials`);
  });
  return items.length ? [make("ul", {}, ...items)] : [];
}

/** The trials of a case, equal ones shown once; the trial `open` is unfolded. @param {(Trial | undefined)[]} trials @param {number} open */
function drawn(trials, open) {
  /** @type {Map<string, {first: Trial, names: string[], isOpen: boolean}>} */
  const groups = new Map();
  const counts = { confirming: 0, rerun: 0, "": 0 };
  trials.forEach((each, number) => {
    if (!each) return;
    const kind = each.kind ?? "";
    counts[kind] += 1;
    const name = `${{ confirming: "confirming trial", rerun: "rerun", "": "repeat" }[kind]} ${counts[kind]}`;
    const turns = each.turns?.map((turn) => [turn.user, turn.agent, turn.calls]);
    const key = JSON.stringify([each.status, each.scores, turns, each.error, each.output]);
    const group = groups.get(key) ?? { first: each, names: [], isOpen: false };
    group.names.push(name);
    group.isOpen ||= number === open;
    groups.set(key, group);
  });
  return [...groups.values()].map((each) => drawTrial(each.first, each.names, each.isOpen));
}

/** @param {Trial} each @param {string[]} names @param {boolean} isOpen */
function drawTrial(each, names, isOpen) {
  const all = names.length > 3 ? `${names.length} trials` : names.join(", ");
  const what = names.length > 1 ? `${all}, all with the same result` : all;
  const more = each.attempts ? ` · ${each.attempts} attempts` : "";
  const time = each.seconds ? ` · ${lasting(each.seconds)}` : "";
  return make(
    "details",
    isOpen ? { open: "" } : {},
    make("summary", {}, make("span", { class: `mark s-${each.status}` }, WORDS[each.status] ?? ""), ` · ${what}${names.length > 1 ? "" : time}${more}`),
    ...(each.error ? [make("h4", {}, `Error: ${each.error[0]}`), block(each.error[1])] : []),
    ...(each.cut ? [make("p", {}, each.cut)] : []),
    ...(each.mocked ? [make("p", { class: "faint" }, `Mocked tools: ${each.mocked.join(", ")}`)] : []),
    ...drawTurns(each.turns ?? [], passages((each.scores ?? []).flatMap((score) => score.cites ?? []))),
    ...(each.scores ?? []).flatMap(drawScore),
    ...(each.output ? [make("h4", {}, "Output of the agent"), block(each.output.join("\n"))] : []),
  );
}

/** @param {string} text @param {RegExp | null} cited */
function block(text, cited = null) {
  return make("pre", { tabindex: "0" }, ...marked(text, cited));
}

/** @param {Score} score */
function drawScore(score) {
  const of = index.criteria.indexOf(score.name);
  const threshold = index.thresholds[of] ?? null;
  const bound = threshold === null ? "" : ` (needs ${index.better[of] === "lower" ? "≤" : "≥"} ${threshold})`;
  const value = score.value === undefined ? "" : ` ${shown(score.value, threshold)}${bound}`;
  const spent = score.tokens ? ` · judge: ${(score.tokens[0] + score.tokens[1]).toLocaleString()} tokens, $${score.tokens[2].toFixed(4)}` : "";
  const [calls, cached] = score.asked ?? [0, 0];
  const replayed = cached ? `, ${cached} of ${calls + cached} answers from the cache` : "";
  return [
    make("h4", {}, make("span", { class: `mark s-${score.status}` }, WORDS[score.status] ?? ""), " ", make("code", {}, score.name), `${value}${spent}${replayed}`),
    ...(score.reason ? [make("p", {}, score.reason)] : []),
    ...(score.evidence ?? []).flatMap(drawEvidence),
  ];
}

/** @param {Evidence} evidence */
function drawEvidence(evidence) {
  const isDiff = evidence.kind === "diff";
  const title = make("h5", {}, evidence.title, ...(isDiff ? [make("small", {}, " − expected, + actual")] : []));
  if (evidence.words) {
    const pieces = evidence.words.flatMap(([kind, words]) => {
      const text = words.join(" ");
      const tag = { removed: "del", added: "ins" }[kind];
      return [tag ? make(tag, {}, text) : text, " "];
    });
    return [title, make("pre", { tabindex: "0", class: "words" }, ...pieces)];
  }
  const lines = evidence.lines.flatMap((line) => {
    const tag = isDiff ? { "- ": "del", "+ ": "ins" }[line.slice(0, 2)] : undefined;
    return [tag ? make(tag, {}, line) : line, "\n"];
  });
  return [title, make("pre", { tabindex: "0" }, ...lines)];
}

/** A pattern for texts that judges cite, however their lines break. @param {string[]} cited */
function passages(cited) {
  const words = cited.map((each) => each.trim().replace(/[.…,;]+$/, "").split(/\s+/));
  const patterns = words.map((each) => each.map((word) => word.replace(/[^\p{L}\p{N}]/gu, escaped)).join("\\s+"));
  const known = patterns.filter(Boolean).sort((a, b) => b.length - a.length);
  return known.length ? new RegExp(`(${known.join("|")})`, "giu") : null;
}

/** @param {string} sign */
function escaped(sign) {
  return `\\u{${sign.codePointAt(0)?.toString(16)}}`;
}

/** A text with marks around what a judge cites. @param {string} text @param {RegExp | null} cited */
function marked(text, cited) {
  // Every second piece is a match.
  const pieces = cited ? text.split(cited) : [text];
  return pieces.map((each, at) => (at % 2 ? make("mark", { title: "cited by a judge" }, each) : each));
}

/** @param {Turn[]} turns @param {RegExp | null} cited */
function drawTurns(turns, cited) {
  const longest = Math.max(...turns.map((turn) => turn.seconds ?? 0), 0.001);
  return turns.map((turn, number) =>
    make(
      "div",
      { class: "turn", "data-turn": String(number + 1) },
      ...(turn.user ? [bubble("user", "User", turn.user, cited)] : []),
      ...(turn.calls ?? []).map((call) =>
        make("details", { class: "call" }, make("summary", {}, "calls ", make("code", {}, `${call.name} ${brief(call.args)}`)), block(call.args ? pretty(call.args) : "(arguments unknown)", cited), ...(call.result ? [block(`→ ${pretty(call.result)}`, cited)] : [])),
      ),
      ...(turn.agent ? [bubble("agent", "Agent", turn.agent, cited)] : []),
      ...(turn.waits ? [make("p", { class: "faint" }, "Waits for an answer to: ", make("code", {}, turn.waits.join(", ")))] : []),
      ...((turn.seconds ?? 0) >= 0.001 ? [waterfall(turn, longest)] : []),
    ),
  );
}

/** @param {string} text */
function brief(text) {
  return text.length > 80 ? "{…}" : text;
}

/** JSON with line breaks; what was cut stays as it is. @param {string} text */
function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "string" ? value : JSON.stringify(value, null, 1);
  } catch {
    return text;
  }
}

/** @param {string} kind @param {string} who @param {string} text @param {RegExp | null} cited */
function bubble(kind, who, text, cited) {
  return make("div", { class: `bubble ${kind}` }, make("b", {}, who), ...marked(text, cited));
}

/** How long the turn took, and how much of it the model and the tools took. @param {Turn} turn @param {number} longest */
function waterfall(turn, longest) {
  const seconds = turn.seconds ?? 0;
  const [model, tool] = [turn.model ?? 0, turn.tool ?? 0];
  const bar = make("div", { class: "fall", "aria-hidden": "true" });
  for (const [kind, part] of Object.entries({ model, tool, rest: Math.max(seconds - model - tool, 0) })) {
    const piece = make("i", { class: kind });
    piece.style.width = `${(100 * part) / longest}%`;
    bar.append(piece);
  }
  const parts = [model ? `model ${lasting(model)}` : "", tool ? `tools ${lasting(tool)}` : ""].filter(Boolean);
  const cost = turn.cost ? ` · $${turn.cost.toFixed(4)}` : "";
  return make("div", {}, bar, make("small", {}, `${lasting(seconds)}${parts.length ? ` (${parts.join(", ")})` : ""}${cost}`));
}

// --- The page --------------------------------------------------------------------------------

function draw() {
  const at = state();
  const wanted = at.get("case");
  const number = wanted ? index.id.findIndex((_, n) => nameOf(n) === wanted) : -1;
  for (const each of ["show", "agent", "evalset", "tag", "criterion"]) {
    the(each, HTMLSelectElement).value = at.get(each) ?? "";
  }
  if (document.activeElement !== query) query.value = at.get("q") ?? "";
  byId("case").hidden = number < 0;
  byId("cases").hidden = byId("overview").hidden = number >= 0;
  drawList(at);
  return number < 0 ? Promise.resolve() : drawCase(number);
}

/** @param {string} id @param {[string, string][]} choices */
function choose(id, choices) {
  const select = the(id, HTMLSelectElement);
  select.append(...choices.map(([value, label]) => make("option", { value }, label)));
  select.onchange = () => go({ [id]: select.value, page: "" });
  const least = id === "tag" ? 1 : 2;
  if (select.parentElement) select.parentElement.hidden = choices.length <= least;
}

/** Move to the next case or the previous one. @param {number} step */
function move(step) {
  const open = state().get("case");
  if (open) {
    const next = rows[rows.findIndex((n) => nameOf(n) === open) + step];
    if (next !== undefined) location.hash = address({ case: nameOf(next), turn: "" });
    return;
  }
  const links = [...byId("list").querySelectorAll("a")];
  const now = links.findIndex((link) => link.matches(":focus"));
  links[Math.min(Math.max(now + step, 0), links.length - 1)]?.focus();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (target === query) query.blur();
    else if (state().get("case")) location.hash = address({ case: "", turn: "" });
    return;
  }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "/") query.focus();
  else if (event.key === "?") the("help", HTMLDialogElement).showModal();
  else return;
  event.preventDefault();
}

/** @param {MouseEvent} event */
async function clicked(event) {
  const button = event.target;
  const id = button instanceof HTMLButtonElement && button.dataset.copy;
  if (!id) return;
  const text = byId(id);
  try {
    await navigator.clipboard.writeText(text.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    getSelection()?.selectAllChildren(text); // then the reader copies it
  }
}

function start() {
  /** @param {(n: number) => boolean} accepts */
  const count = (accepts) => index.id.filter((_, n) => accepts(n)).length;
  choose("show", SHOWN.map(([value, label, accepts]) => [value, `${label} (${count(accepts).toLocaleString()})`]));
  /** @param {string} value @returns {[string, string]} */
  const pair = (value) => [value, value];
  /** @param {string} all @param {string[]} names @returns {[string, string][]} */
  const withAll = (all, names) => [["", all], ...names.map(pair)];
  choose("agent", withAll("all agents", index.agents));
  choose("evalset", withAll("all evalsets", index.evalsets));
  choose("tag", index.tags.length ? withAll("all tags", index.tags.map(([tag]) => tag)) : []);
  choose("criterion", withAll("all criteria", index.criteria));
  byId("filters").onsubmit = async (event) => {
    event.preventDefault();
    await searchInside(query.value);
    draw();
  };
  query.oninput = () => go({ q: query.value, page: "" });
  for (const time of document.querySelectorAll("time")) {
    const when = new Date(time.dateTime);
    if (!Number.isNaN(when.valueOf())) time.textContent = when.toLocaleString();
  }
  for (const each of document.querySelectorAll(".needs-script:not(#case)")) each.removeAttribute("hidden");
  addEventListener("keydown", pressed);
  addEventListener("click", clicked);
  addEventListener("hashchange", () => {
    if (!location.hash || location.hash.includes("=")) draw();
  });
  return draw();
}

await start();
document.documentElement.dataset.ready = "";
performance.mark("ready");

export {};
