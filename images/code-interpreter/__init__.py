"""The code interpreter of a sandbox: contexts that run code and keep their state, over HTTP.

`python3 -m warren_interpreter` serves; `kernel.py` and `shapes.py` run inside the Python contexts.
"""
