"""What people use without Python: the command line, reports, the planner page and the collector.

``catalogue`` every estimator with its options · ``tasks`` one estimator fitted to a file · ``cli``
the command ``quorate`` · ``reports`` pages · ``serve`` the planner and the collector ·
``model_files`` models as JSON · ``registry`` an entry for the public registry of deployments.
"""
