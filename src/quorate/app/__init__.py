"""Applications: the command line, reports, the planner page and the collector.

``catalogue`` every estimator with its options · ``tasks`` fitting an estimator to a file · ``cli``
the command ``quorate`` · ``reports`` pages · ``serve`` the planner and the collector ·
``model_files`` models as JSON · ``registry`` entries for the public registry of deployments.
"""
