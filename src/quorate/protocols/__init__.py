"""Protocols that trust nobody, or a shuffler only: clients, servers and what they promise.

Read :mod:`~quorate.protocols.task` first: a task is the public file that both sides hold. Analysts
who want to try a protocol out call :mod:`~quorate.protocols.simulate`.
"""
