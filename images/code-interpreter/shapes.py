"""What is shown, as data: tables as columns, figures as charts.

None of the libraries is loaded here: what they bring is looked for by name, and what must be changed
in one is changed when it is loaded.
"""
import importlib.abc
import importlib.machinery
import math
import os
import sys

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

ROWS_MAX = 100_000  # of a table, as data; its text and HTML are there anyway


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def pop(self, typ, default=None):
        """Matplotlib's backend takes figures from all formatters before it gives them its own."""
        return default


def plain(value):
    """A cell of a table, or a coordinate, as JSON has it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()  # not a time is unlike itself
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        kind = getattr(value, "dtype", None)
        if kind is not None and kind.kind == "M":
            text = str(value)
            return None if text == "NaT" else text
        value = value.item()
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return str(value)


def table(frame):
    if len(frame) > ROWS_MAX:
        return None
    return {str(name): [plain(v) for v in frame.iloc[:, i]] for i, name in enumerate(frame.columns)}


def chart(figure):
    from . import charts
    try:
        return charts.of_figure(figure)
    except Exception:
        return None  # the picture is there; a chart that is not understood must not spoil it


def keep_boxes(module):
    """A box plot is drawn as lines: what it was drawn from is kept on the axes."""
    draw = module.Axes.bxp

    def bxp(self, bxpstats, *args, **kwargs):
        flat = kwargs.get("vert") is False or kwargs.get("orientation") == "horizontal"
        boxes = self.__dict__.setdefault("_warren_boxes", [])
        boxes.extend((dict(one), flat) for one in bxpstats)
        return draw(self, bxpstats, *args, **kwargs)
    bxp.__doc__ = draw.__doc__
    module.Axes.bxp = bxp


def show_saved(module):
    """A picture that is saved to a file is shown too."""
    save = module.Image.save

    def saved(self, fp, *args, **kwargs):
        answer = save(self, fp, *args, **kwargs)
        if isinstance(fp, (str, os.PathLike)) and "matplotlib" not in sys._getframe(1).f_globals.get("__name__", ""):
            from IPython.display import display
            display(self)
        return answer
    saved.__doc__ = save.__doc__
    module.Image.save = saved


class Loaded(importlib.abc.MetaPathFinder):
    """Calls a function with a module right after it was loaded."""

    def __init__(self, calls):
        self.calls = calls

    def find_spec(self, name, path=None, target=None):
        if name not in self.calls:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        call = self.calls.pop(name)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                call(module)
            spec.loader.exec_module = exec_module
        return spec


def install(shell):
    formatters = shell.display_formatter.formatters
    data, drawn = DataFormatter(parent=shell.display_formatter), ChartFormatter(parent=shell.display_formatter)
    data.for_type_by_name("pandas.core.frame", "DataFrame", table)
    drawn.for_type_by_name("matplotlib.figure", "Figure", chart)
    formatters["e2b/data"], formatters["e2b/chart"] = data, drawn
    sys.meta_path.insert(0, Loaded({"matplotlib.axes._axes": keep_boxes, "PIL.Image": show_saved}))
