// The jobs that a `strategy.matrix` stands for.
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstrategymatrix

export function combinations(matrix) {
  if (!matrix) return [{}];
  const { include = [], exclude = [], ...axes } = matrix;
  let found = Object.keys(axes).length ? [{}] : [];
  for (const [name, values] of Object.entries(axes))
    found = found.flatMap((each) => values.map((value) => ({ ...each, [name]: value })));
  found = found.filter((each) => !exclude.some((left) => fits(left, each, Object.keys(left))));
  const originals = found.map((each) => ({ ...each }));
  for (const extra of include) {
    // It is added to those whose own values it does not change; where there is none, it is one more.
    const own = Object.keys(extra).filter((name) => name in axes);
    const at = originals.flatMap((each, index) => (fits(extra, each, own) ? [index] : []));
    if (at.length) for (const index of at) Object.assign(found[index], extra);
    else found.push({ ...extra });
  }
  return found;
}

function fits(wanted, each, names) {
  return names.every((name) => JSON.stringify(wanted[name]) === JSON.stringify(each[name]));
}
