"""What a function does in a forked process, which holds a copy of everything that was open."""

import os
import warnings


def in_a_fork(ask):
    """Return ``"answered"``, or the name of what ``ask`` raises in a fork of this process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fork among threads, which only asks
        child = os.fork()
    if child == 0:
        try:
            ask()
            said = "answered"
        except BaseException as problem:
            said = type(problem).__name__
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said
