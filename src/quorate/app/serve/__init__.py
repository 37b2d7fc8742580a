"""HTTP servers: the planner's page and the collector; needs the extra ``serve``."""
