"""Attacks on the command line: bad input, interruption, damaged models, bombs and odd places.

`make attack` runs them for an hour; the tests beside run a short form of each. No attack may end in a traceback,
take the machine's memory, or lose a file.
"""
