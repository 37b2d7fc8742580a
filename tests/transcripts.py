"""Every released number of every estimator, route and protocol under seeded noise, compared.

    python tests/transcripts.py record     writes tests/transcripts.json
    python tests/transcripts.py compare    names what differs from it

A change that moves code and promises to change no answer is held to this. What has to change is
recorded anew in a commit of its own, which says why. Transcripts are compared to the last bit, so
they are good for one arithmetic: on another processor or numpy record first, at the commit that is
the measure, and compare then.
"""

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from crowd_worlds import COLUMNS, ESTIMATORS, visits
from crowd_worlds import released as released_by_route
from fitted_examples import make, released
from quorate import UserData
from quorate.app.catalogue import CATALOGUE
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines.arithmetic import arithmetic_fingerprint
from quorate.local.vectors import known_answers

FILE = Path(__file__).with_suffix(".json")
SEEDS = (0, 1)


def transcripts():
    """Yield a name and a function that returns what is released under it."""
    for name in sorted(ESTIMATORS):
        for seed in SEEDS:
            yield f"route: {name}, seed {seed}", lambda n=name, s=seed: _route(n, s)
    for name in sorted(CATALOGUE):
        for seed in SEEDS:
            for relation in Relation:
                yield (
                    f"example: {name}, {relation.name.lower()}, seed {seed}",
                    lambda n=name, r=relation, s=seed: _example(n, r, s),
                )
    yield "protocols: known answers", known_answers


def _route(name, seed):
    return released_by_route(name, UserData.from_frame(visits(), **COLUMNS), seed)


def _example(name, relation, seed):
    example = CATALOGUE[name].example()
    others = {"relation": relation} if "relation" in make(name).get_params() else {}
    with use_noise(SeededNoise(seed)):
        fitted = make(name, **others).fit(example.X, example.y, users=example.users)
    return released(fitted)


def digest(run):
    """Return a hash of what is released, or of the sentence with which it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = run()
        except Exception as refusal:  # a refusal is an answer too
            found = f"{type(refusal).__name__}: {refusal}"
    return hashlib.sha256(repr(plain(found)).encode()).hexdigest()[:16]


def plain(value):
    """Return a value in a form whose repr has every bit of every number."""
    if isinstance(value, dict):
        return [(str(key), plain(each)) for key, each in sorted(value.items(), key=str)]
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.ravel().tolist()]
    if isinstance(value, float | int | str | bytes | bool | None):
        return value.hex() if isinstance(value, float) else value
    if hasattr(value, "to_pydict"):
        return plain(value.to_pydict())
    if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
        fields = getattr(value, "__dict__", {})
        shown = {name: each for name, each in fields.items() if not name.startswith("_")}
        return (type(value).__name__, plain(shown) if shown else _without_address(value))
    return _without_address(value)


def _without_address(value):
    text = repr(value)
    return text if " at 0x" not in text else type(value).__name__


def recorded():
    """Return what stands in the file."""
    return json.loads(FILE.read_text())


def main(action):
    found = {}
    for name, run in transcripts():
        found[name] = digest(run)
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if action == "record":
        document = {"arithmetic": arithmetic_fingerprint(), "transcripts": found}
        FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        print(f"{len(found)} transcripts recorded")
        return 0
    document = recorded()
    if document["arithmetic"] != arithmetic_fingerprint():
        print("They were recorded with another arithmetic: record on this machine first.")
        return 2
    before = document["transcripts"]
    different = sorted(n for n in {**before, **found} if before.get(n) != found.get(n))
    print("\n".join(different))
    print(f"{len(found)} transcripts, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["record", "compare"])
    sys.exit(main(parser.parse_args().action))
