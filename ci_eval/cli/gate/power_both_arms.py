"""The power of the gate's test where a doubt runs the merge base in the same job, in advance.

Stored runs raise a doubt; then the change is compared with the merge base alone, at several looks
(`gate.both_arms`).  Both share the first round of the change, so a run that by chance does not look
worse is not tested at all.
"""

import math
from dataclasses import dataclass

from ci_eval.cli.gate.power_detectable_drop import Setting, normals
from ci_eval.gate.both_arms import FILTERED, LOOKS
from ci_eval.stats.sequential import SPENT, levels


@dataclass(frozen=True)
class ArmsSetting(Setting):
    """One test of one criterion, as the gate makes it with both arms.

    `doubts` are those against stored runs and at each look except the last.  What days add counts
    for the first only.
    """

    budget: float = 10.0
    """Maximum number of trials of both arms, as a multiple of the planned ones."""

    def levels(self) -> tuple[float, ...]:
        """Return the significance level at each look at both arms that the budget allows."""
        variances = tuple(1 / change + 1 / base for change, base in LOOKS)
        found = levels(variances, SPENT, self.rate * FILTERED, self.doubts[1:])
        return found[: sum(sum(each) <= self.budget for each in LOOKS)]

    def power(self, drop: float) -> float:
        """Return the probability of detecting a `drop` in each case."""
        if self.now + self.before == 0:
            return super().power(drop)
        normal = normals(2 + 2 * len(LOOKS))
        round_error = math.sqrt(self.now / self.cases)
        change = normal[0] * round_error
        stored = normal[1] * math.hypot(math.sqrt(self.before / self.runs / self.cases), self.day)
        seen = drop + change - stored
        alive = seen >= max(self._bound(self.doubts[0], 0, drop), self.least)
        base = 0.0 * change
        found, rounds = 0.0, (1, 0)
        for look, (level, counts) in enumerate(zip(self.levels(), LOOKS, strict=False)):
            more = [math.sqrt(now - then) for now, then in zip(counts, rounds, strict=True)]
            change = change + normal[2 + 2 * look] * more[0] * round_error
            base = base + normal[3 + 2 * look] * more[1] * round_error
            rounds = counts
            seen = drop + change / counts[0] - base / counts[1]
            spread = self.now * sum(1 / each for each in counts) + drop**2 / (sum(counts) - 1)
            error = math.sqrt(spread / self.cases)
            bound = max(self._quantile(level) * error, self.least)
            found += float((alive & (seen >= bound)).mean())
            if look + 1 < len(self.doubts):
                doubt = max(self._quantile(self.doubts[look + 1]) * error, self.least)
                alive &= (seen < bound) & (seen >= doubt)
        return found
