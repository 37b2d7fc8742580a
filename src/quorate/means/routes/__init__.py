"""The ways to a private mean, and which of them is taken.

* :mod:`~quorate.means.routes.ways`: what each way is expected to cost, from public and released
  numbers.
* :mod:`~quorate.means.routes.auto_route`: the default, near the best of all others.
* :mod:`~quorate.means.routes.interval_route`, :mod:`~quorate.means.routes.windows`,
  :mod:`~quorate.core.bounds.diamond`: an interval in each feature, or an L1 ball.
* :mod:`~quorate.means.routes.gaussian_routes`, :mod:`~quorate.means.routes.drifting_ball`,
  :mod:`~quorate.core.bounds.lifted_ball`: a ball that drifts to the users.
* :mod:`~quorate.means.routes.ends`: how far out to clip.
* :mod:`~quorate.means.routes.nearness`: how far apart people are.
"""
