"""The methods for a private mean, and how one of them is chosen.

* :mod:`~quorate.means.routes.expected_errors`: the error that each method is expected to have,
  from public and released numbers.
* :mod:`~quorate.means.routes.auto_route`: the default, which chooses among the others.
* :mod:`~quorate.means.routes.interval_route`, :mod:`~quorate.means.routes.windows`,
  :mod:`~quorate.core.bounds.diamond`: an interval in each feature, or an L1 ball.
* :mod:`~quorate.means.routes.gaussian_routes`, :mod:`~quorate.means.routes.drifting_ball`,
  :mod:`~quorate.core.bounds.lifted_ball`: a clipping ball that moves towards the users.
* :mod:`~quorate.means.routes.ends`: how the clipping bounds are chosen.
* :mod:`~quorate.means.routes.nearness`: private statistics of how far apart people are.
"""
