"""The ways to a private mean, and which of them is taken.

* :mod:`~quorate.means.routes.ways`: which way, from public and released numbers.
* :mod:`~quorate.means.routes.auto_route`: the default, near the best of all others.
* :mod:`~quorate.means.routes.one_feature`, :mod:`~quorate.means.routes.windows`: an interval in
  each feature, from a window and its ends.
* :mod:`~quorate.means.routes.interval_route`, :mod:`~quorate.means.routes.tails`,
  :mod:`~quorate.core.bounds.diamond`: an L1 ball, from quantiles of pairs and distances.
* :mod:`~quorate.means.routes.quantile_route`: a range in each coordinate, for the fewest.
* :mod:`~quorate.means.routes.gaussian_routes`, :mod:`~quorate.means.routes.shrinking`,
  :mod:`~quorate.means.routes.radius`, :mod:`~quorate.means.routes.budget_split`: a ball that
  shrinks, or starts from a core.
* :mod:`~quorate.means.routes.drifting_ball`, :mod:`~quorate.core.bounds.lifted_ball`: a ball that
  drifts to few users.
"""
