"""Draw the map "which estimator?": from what is wanted to the class that releases it.

Every estimator of the catalogue is on it. One that no question below names stands under *More*,
with the sentence of the catalogue.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

import quorate
from quorate.app.catalogue import CATALOGUE

# Branches of the map; each question leads to one or more estimators.
BRANCHES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "A count, a total, a table": {
        "Counts, sums, means or medians by group?": ("UserTable",),
        "How many people, or how many rows?": ("UserCount",),
        "The total of a column?": ("UserSum",),
        "The mean over all rows, so that active users weigh more?": ("RecordMean",),
    },
    "The typical user": {
        "The mean, each user counted once?": ("UserMean",),
        "The median, with wide bounds or outliers?": ("PrivateMedian",),
        "Several quantiles?": ("UserQuantiles",),
        "How much users differ, to plan a study?": ("UserVariation",),
        "Features to standardise, or their covariance?": ("UserScaler", "UserCovariance"),
        "Many questions, each chosen after the last answer?": ("UserQueries",),
    },
    "A distribution": {
        "Of one categorical column?": ("DiscreteDistribution",),
        "Which texts, words or phrases many people use?": ("PopularPhrases",),
        "Of several categorical columns?": ("ProductDistribution",),
        "Of a number, as bins or as a curve?": ("Histogram", "EmpiricalCDF"),
        "A normal distribution?": ("GaussianDistribution",),
        "The best of a finite family of densities?": ("HypothesisSelector",),
        "Of several columns together, to draw synthetic people from?": ("UserSynthesizer",),
    },
    "A prediction from several columns": {
        "A class, with probabilities?": ("LogisticRegression",),
        "A class, by a margin?": ("LinearSVC",),
        "A number?": ("LinearRegression",),
        "A number, with correlated features or outliers?": ("Ridge", "HuberRegression"),
        "With your own neural network?": ("NeuralClassifier", "NeuralRegressor"),
        "Which settings of a model?": ("PrivateGridSearch",),
        "Which of several models that exist already?": ("LossSelector",),
    },
    "A rule that can be read": {
        "A cut-off on one number?": ("ThresholdLearner", "PrivateThreshold"),
        "The best rule of a finite class?": ("ConceptLearner",),
        "The shortest rule that fits?": ("ConciseLearner",),
        "How good can any rule of a class be?": ("PrivateMinError",),
        "A parity of binary features?": ("ParityLearner",),
        "A rule that most users find on their own?": ("StableLearner",),
        "Anything learned by statistical queries?": ("QueryLearner",),
    },
}
ROOT_QUESTION = "What do you want to release about your users?"
ELSEWHERE = (
    "People keep their data on their devices?",
    "protocols.html",
    "local and shuffle protocols",
)


def branches() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the map with every estimator of the catalogue on it."""
    found = {title: dict(asked) for title, asked in BRANCHES.items()}
    placed = {name for asked in BRANCHES.values() for names in asked.values() for name in names}
    rest = {f"{CATALOGUE[name].sentence}": (name,) for name in CATALOGUE if name not in placed}
    if rest:
        found["More"] = rest
    return found


def page() -> str:
    """Return the map as HTML; on a narrow screen its branches stand below each other."""
    question, address, name = ELSEWHERE
    lines = ['<div class="map">', f'<p class="map-root">{html.escape(ROOT_QUESTION)}</p>']
    lines.append('<div class="map-branches">')
    for title, asked in branches().items():
        lines.append(f'<section class="map-branch"><h3>{html.escape(title)}</h3><dl>')
        for each, names in asked.items():
            links = " ".join(map(_link, names))
            lines.append(f"<dt>{html.escape(each)}</dt><dd>{links}</dd>")
        lines.append("</dl></section>")
    lines.append(
        f'<section class="map-branch"><h3>Without a trusted server</h3><dl>'
        f'<dt>{question}</dt><dd><a href="{address}">{name}</a></dd></dl></section>'
    )
    return "\n".join([*lines, "</div></div>", ""])


def _link(name: str) -> str:
    if name not in quorate.__all__:
        return f"<code>{name}</code>"
    return f'<a href="api/names/quorate.{name}.html"><code>{name}</code></a>'


def write(folder: Path) -> None:
    """Write the map into ``folder``, where the page about it includes it from."""
    folder.mkdir(exist_ok=True)
    path = folder / "estimator-map.html"
    if not path.exists() or path.read_text() != page():
        path.write_text(page())
