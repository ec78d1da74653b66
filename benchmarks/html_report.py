"""`report.html` of many cases: what it costs to write, and how fast a browser shows it.

python benchmarks/html_report.py [CASES …]        (default: 10000 100000)

Three repeats of each case, two criteria, 3 % of the cases fail. Needs Debian's
`chromium` and `pip install playwright`.
"""

import gc
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import measure
import numpy as np

from ci_eval.plugins import points
from ci_eval.records.findings import Report
from ci_eval.run_files.file_names import RUN_FILE
from ci_eval.run_files.run_file import read_run

CHROMIUM = "/usr/bin/chromium"
REPEATS = 3
BROWSERS = 3
"""Number of fresh browsers; the median counts."""
WORDS = ("order", "refund", "parcel", "please", "shipping", "address", "number", "week", "card")


def main(sizes: list[int]) -> None:
    """Measure each size."""
    print(measure.environment())
    gc.set_threshold(50_000, 10, 10)  # as the command does
    for cases in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_suite(folder, cases)
            measure.report(f"{cases:,} cases, whole run", measure.ci_eval("run", folder=folder))
            page = folder / "ci-eval-report" / "report.html"
            print(f"  {'size':<12} {page.stat().st_size / 1e6:8.2f} MB")
            for document in ("junit", "html"):
                cost = median(written(folder / "ci-eval-report", document) for _ in range(3))
                print(f"  {document:<12} {cost:8.2f} s CPU to write")
            show(page)


def written(folder: Path, name: str) -> float:
    """Return the CPU time, in seconds, of writing one document of a run."""
    run = read_run(folder / RUN_FILE, shown=RUN_FILE)
    report = Report.model_validate_json((folder / "report.json").read_bytes())
    begun = time.process_time()
    for _ in points.reporter[name]().of_run(report, run):
        pass
    return time.process_time() - begun


def write_suite(folder: Path, cases: int) -> None:
    """Write an evalset and an agent's traces of it, about 1,300 bytes of text per case."""
    words = np.random.default_rng(1)

    def text(count: int) -> str:
        return " ".join(words.choice(WORDS, count))

    with (
        (folder / "evals.json").open("w") as evalset,
        (folder / "traces.jsonl").open("w") as traces,
    ):
        evalset.write('{"eval_set_id": "bench", "eval_cases": [')
        for number in range(cases):
            turn = {
                "user_content": {"role": "user", "parts": [{"text": text(25)}]},
                "final_response": {"role": "model", "parts": [{"text": text(60)}]},
                "intermediate_data": {"tool_uses": [{"name": "find", "args": {"q": text(5)}}]},
            }
            case = {"eval_id": f"case_{number}", "conversation": [turn]}
            evalset.write(("," if number else "") + json.dumps(case) + "\n")
            did: dict[str, Any] = turn
            if number % 33 == 0:
                response = {"role": "model", "parts": [{"text": text(60)}]}
                did = {**turn, "final_response": response, "intermediate_data": {"tool_uses": []}}
            row = json.dumps({"eval_id": case["eval_id"], "invocations": [did]})
            traces.writelines([row + "\n"] * REPEATS)
        evalset.write("]}\n")
    (folder / "ci-eval.yaml").write_text(
        f"agents: {{bench: {{recorded: traces.jsonl}}}}\nevalsets: {{bench: evals.json}}\n"
        f"run: {{repeats: {REPEATS}}}\n{measure.CRITERIA}"
    )


def show(page: Path) -> None:
    """Open the page in fresh browsers, and print medians."""
    from playwright.sync_api import sync_playwright

    runs = []
    with sync_playwright() as driver:
        for _ in range(BROWSERS):
            browser = driver.chromium.launch(
                executable_path=CHROMIUM, args=["--enable-precise-memory-info"]
            )
            tab = browser.new_context().new_page()
            tab.goto(f"file://{page}")
            tab.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
            runs.append({**tab.evaluate(_LOADED), **tab.evaluate(_USED), "MB": _memory()})
            browser.close()
    for key, unit in (
        ("painted", "s"),
        ("interactive", "s"),
        ("filter", "ms"),
        ("search", "ms"),
        ("detail", "ms"),
        ("MB", "MB"),
    ):
        print(f"  {key:<12} {median(each[key] for each in runs):8.2f} {unit}")


_LOADED = """() => ({
  painted: performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000,
  interactive: performance.getEntriesByName("ready")[0].startTime / 1000,
})"""
_USED = """async () => {
  const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  const timed = async (act) => {
    const begun = performance.now();
    act();
    await frame();
    return performance.now() - begun;
  };
  const show = document.getElementById("show"), q = document.getElementById("q");
  const filter = await timed(() => { show.value = "failed"; show.onchange(); });
  const search = await timed(() => { q.value = "case_99"; q.oninput(); });
  const begun = performance.now();
  document.querySelector("#list tbody a").click();
  while (!document.querySelector("#case .bubble")) await frame();
  return { filter, search, detail: performance.now() - begun };
}"""


def _memory() -> float:
    """Return the proportional memory of the largest process that shows a page, in MB."""
    sizes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" in (process / "cmdline").read_bytes():
                rollup = (process / "smaps_rollup").read_text()
                sizes.append(int(rollup.split("Pss:")[1].split()[0]) / 1024)
        except OSError:
            continue
    return max(sizes, default=0.0)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000, 100_000])
