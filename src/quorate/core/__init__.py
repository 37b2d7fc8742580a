"""The core: the only place where rows meet noise.

Code outside of it sees public facts, released numbers, and sealed ones that it cannot read. A
mistake there costs accuracy, never privacy.

* :mod:`~quorate.core.moves`: how far one user moves a vector of integers;
* :mod:`~quorate.core.sealed`: numbers that nobody can read, and what may be done with them;
* :mod:`~quorate.core.people`: users whose rows stay inside, and the questions they answer.
"""
