"""How many words and phrases are found without a list, by rounds and by simpler rules.

Run ``python benchmarks/phrases.py``. Epsilon 1 and delta 1e-6 for a whole person who may come or
stay away. Two worlds:

* *prose*: words in docstrings and comments of the Python files that are installed beside this
  library; a person is a file. Files whose path has an even checksum are for choosing (rounds, their
  shares, when a key is dropped), those with an odd one for reporting.
* *Zipf*: 20,000 made-up people with 1 to 5,000 draws of 200,000 keys. Seed 0 was for choosing,
  other seeds are for reporting.

Compared with

* one key a person and Laplace noise, as ``keys="popular"`` does;
* one round of Gaussian noise on at most K keys a person, with the best K in hindsight;
* DP-SIPS (Swanberg et al. 2023) with the best K in hindsight: three rounds whose budgets double, of
  which later ones leave out what was found.

Phrases of two words are found among those whose words were found, with half of the budget each, and
compared with one round on all pairs of words, with the best K in hindsight.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quorate as qr
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.mechanisms.calibrate import gaussian_multiplier
from quorate.mechanisms.choices.set_union import passing_bound
from quorate.mechanisms.choices.stable_choice import StableHistogram

EPSILON, DELTA = 1.0, 1e-6
KEYS = (1, 3, 10, 30, 100, 300, 1000)
SIPS = (1 / 7, 2 / 7, 4 / 7)
# What noise of the simpler rules is rounded to; they are floats here.
_STEPS = 2**17


def prose(half: int) -> list[str]:
    """Return the words of each file, in small letters."""
    root = Path(np.__file__).parents[1]
    found = []
    for path in sorted(root.rglob("*.py")):
        if zlib.crc32(str(path.relative_to(root)).encode()) % 2 != half:
            continue
        text = path.read_text(errors="ignore")
        if len(text) <= 200_000:
            parts = re.findall(r'"""(.*?)"""', text, re.S) + re.findall(r"#\s(.*)", text)
            words = re.findall(r"[a-z]+", " ".join(parts).lower())
            found += [" ".join(words)] if words else []
    return found


def zipf(seed: int) -> list[np.ndarray]:
    """Return the keys of each person."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 200_001) ** 1.1
    sizes = np.minimum(np.maximum(1, (rng.pareto(1.3, 20_000) * 40 / 3).astype(int)), 5000)
    keys = rng.choice(len(popularity), sizes.sum(), p=popularity / popularity.sum())
    return [np.unique(each) for each in np.split(keys, np.cumsum(sizes)[:-1])]


def pairs(texts: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Yield each pair of words of each person."""
    for person, text in enumerate(texts):
        words = text.split()
        for pair in set(pairwise(words)):
            yield person, pair


def coded(held: Iterator[tuple[int, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return whose each holding is, and the place of its key."""
    place: dict[Any, int] = {}
    rows = [(person, place.setdefault(key, len(place))) for person, key in held]
    owners, keys = np.array(rows).T
    return owners, keys


def one_key(owners: np.ndarray, keys: np.ndarray, seed: int) -> int:
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(owners)), owners))
    _, first = np.unique(owners[order], return_index=True)
    votes = dict(enumerate(np.bincount(keys[order][first]).tolist()))
    with use_noise(SeededNoise(seed)):
        mechanism = StableHistogram(epsilon=EPSILON, delta=DELTA, relation=Relation.ADD_REMOVE)
        return len(mechanism.release(votes))


def rounds(
    owners: np.ndarray, keys: np.ndarray, seed: int, most: int, shares: Sequence[float] = (1.0,)
) -> int:
    """Return how many keys rounds find that leave out what was found."""
    rng, size = np.random.default_rng(seed), int(keys.max()) + 1
    multiplier, found = gaussian_multiplier(EPSILON, DELTA / 2), np.zeros(size, bool)
    for share in shares:
        sigma = multiplier / math.sqrt(share)
        left = ~found[keys]
        mine, theirs = owners[left], keys[left]
        order = np.lexsort((rng.random(len(mine)), mine))
        mine, theirs = mine[order], theirs[order]
        start = np.searchsorted(mine, np.arange(int(owners.max()) + 1))
        few = np.arange(len(mine)) - start[mine] < most
        mine, theirs = mine[few], theirs[few]
        weights = 1 / np.sqrt(np.bincount(mine)[mine])
        totals = np.bincount(theirs, weights=weights, minlength=size)
        noisy = totals + rng.normal(0, sigma, size)
        limit = threshold(sigma, most, DELTA / 2 / len(shares))
        found |= (totals > 0) & (noisy > limit)
    return int(found.sum())


def threshold(sigma: float, most: int, failure: float) -> float:
    """Return the smallest threshold, by the same bound as that of the library."""
    low, high = _STEPS, int(_STEPS * (2 + 40 * sigma))
    while high - low > 1:
        middle = (low + high) // 2
        chance = passing_bound(
            middle, sigma=sigma * _STEPS, radius=_STEPS, most=most, relation=Relation.ADD_REMOVE
        )
        low, high = (low, middle) if chance <= failure else (middle, high)
    return high / _STEPS


def mean(found: Callable[[int], float], seeds: Sequence[int]) -> float:
    return float(np.mean([found(seed) for seed in seeds]))


def ours(table: pa.Table, seed: int, **known: Any) -> tuple[Any, ...]:
    with use_noise(SeededNoise(seed)):
        phrases = qr.PopularPhrases(EPSILON, delta=DELTA, random_state=seed, **known)
        return phrases.fit(table, users="who").phrases_


def compare(name: str, table: pa.Table, owners: Any, keys: Any, seeds: Sequence[int]) -> None:
    found = mean(lambda seed: len(ours(table, seed)), seeds)
    alone = mean(lambda seed: one_key(owners, keys, seed), seeds)
    gauss = max((mean(lambda s, k=k: rounds(owners, keys, s, k), seeds), k) for k in KEYS)
    sips = max((mean(lambda s, k=k: rounds(owners, keys, s, k, SIPS), seeds), k) for k in KEYS)
    print(f"{name}: {owners.max() + 1} people, {keys.max() + 1} keys; found {found:.0f}")
    print(f"  one key a person {alone:.0f}: ratio {found / max(alone, 1):.1f}")
    print(f"  one round, best K = {gauss[1]}: {gauss[0]:.0f}, ratio {found / gauss[0]:.2f}")
    print(f"  DP-SIPS, best K = {sips[1]}: {sips[0]:.0f}, ratio {found / sips[0]:.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, 1 + parser.parse_args().seeds)
    texts = prose(1)
    words = [(person, word) for person, text in enumerate(texts) for word in set(text.split())]
    owners, keys = coded(iter(words))
    table = pa.table({"who": owners, "word": [word for _, word in words]})
    compare("prose", table, owners, keys, seeds)
    people = zipf(1)
    owners = np.repeat(np.arange(len(people)), [len(each) for each in people])
    keys = np.concatenate(people)
    compare("Zipf", pa.table({"who": owners, "key": keys}), owners, keys, seeds)
    table = pa.table({"who": np.arange(len(texts)), "text": texts})
    found = [ours(table, seed, of="words", lengths=2) for seed in seeds]
    two = float(np.mean([sum(" " in each for each in run) for run in found]))
    one = float(np.mean([sum(" " not in each for each in run) for run in found]))
    owners, keys = coded(pairs(texts))
    gauss = max((mean(lambda s, k=k: rounds(owners, keys, s, k), seeds[:1]), k) for k in KEYS)
    print(f"pairs of words: {keys.max() + 1} in prose; found {one:.0f} words and {two:.0f} pairs")
    print(f"  one round on pairs alone, best K = {gauss[1]}: {gauss[0]:.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
