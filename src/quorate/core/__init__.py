"""The core: the only place where rows meet noise.

Code outside of it sees public facts, released numbers, and sealed numbers that it cannot read. So a
mistake outside the core costs accuracy, never privacy.

* :mod:`~quorate.core.moves`: the sensitivity of a vector of integers: by how much one user changes
  it;
* :mod:`~quorate.core.sealed`: numbers that nobody can read, and the operations allowed on them;
* :mod:`~quorate.core.people`: users whose rows stay inside the core, and the queries about them.
"""
