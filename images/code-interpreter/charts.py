"""The data of a matplotlib figure: what its axes show, not how."""
import re

from matplotlib import dates
from matplotlib.category import StrCategoryConverter
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.patches import Wedge
from matplotlib.ticker import ScalarFormatter

from .shapes import plain

UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")
PRIVATE = re.compile(r"_(?:child|container|nolegend_?)(\d*)$")


def of_figure(figure):
    charts = [of_axes(ax) for ax in figure.axes if ax.get_label() != "<colorbar>"]
    if len(charts) == 1:
        return charts[0]
    if not charts:
        return {"type": "unknown", "title": title_of(figure), "elements": []}
    return {"type": "superchart", "title": title_of(figure), "elements": charts}


def title_of(figure):
    return figure._suptitle.get_text() if figure._suptitle else None


def of_axes(ax):
    for kind, elements in ((pie, Wedge in map(type, ax.patches)), (boxes, "_warren_boxes" in ax.__dict__),
                           (bars, any(isinstance(c, BarContainer) for c in ax.containers)), (lines, ax.lines),
                           (points, any(isinstance(c, PathCollection) for c in ax.collections))):
        if elements:
            return {**kind(ax), "title": ax.get_title() or None}
    return {"type": "unknown", "title": ax.get_title() or None, "elements": []}


def unit_of(label):
    found = UNIT.search(label)
    return found.group(1).strip() if found else None


def plane(ax, flat=False):
    """The labels of both axes; those of a chart that lies on its side are swapped."""
    x, y = ax.get_xlabel(), ax.get_ylabel()
    if flat:
        x, y = y, x
    return {"x_label": x or None, "y_label": y or None, "x_unit": unit_of(x), "y_unit": unit_of(y)}


def scale_of(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    if isinstance(converter, StrCategoryConverter):
        return "categorical"
    if converter is not None and "date" in type(converter).__name__.lower():
        return "datetime"
    return axis.get_scale()


def at(axis, value):
    """A place on the axis as it was given: a number, a date or a name."""
    scale = scale_of(axis)
    if isinstance(value, str) or hasattr(value, "isoformat") or str(getattr(value, "dtype", "")).startswith("datetime"):
        return plain(value)
    if scale == "datetime":
        return dates.num2date(value).replace(tzinfo=None).isoformat()
    if scale == "categorical":
        names = {place: name for name, place in axis.units._mapping.items()}
        return names.get(value, plain(value))
    return plain(value)


def ticks(ax):
    both = {}
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        both[f"{name}_ticks"] = [at(axis, v) for v in axis.get_ticklocs()]
        both[f"{name}_tick_labels"] = [t.get_text() for t in axis.get_ticklabels()]
        both[f"{name}_scale"] = scale_of(axis)
    return both


def named(label, what, number):
    found = PRIVATE.match(str(label))
    return f"{what} {found.group(1) or number}" if found else str(label)


def lines(ax):
    elements = [{"label": named(line.get_label(), "Line", i),
                 "points": [[at(ax.xaxis, x), at(ax.yaxis, y)]
                            for x, y in zip(line.get_xdata(orig=True), line.get_ydata(orig=True))]}
                for i, line in enumerate(ax.lines)]
    return {"type": "line", **plane(ax), **ticks(ax), "elements": elements}


def points(ax):
    clouds = [c for c in ax.collections if isinstance(c, PathCollection)]
    elements = [{"label": named(cloud.get_label(), "Scatter", i),
                 "points": [[at(ax.xaxis, x), at(ax.yaxis, y)] for x, y in cloud.get_offsets().tolist()]}
                for i, cloud in enumerate(clouds)]
    return {"type": "scatter", **plane(ax), **ticks(ax), "elements": elements}


def bars(ax):
    groups = [c for c in ax.containers if isinstance(c, BarContainer)]
    flat = all(getattr(c, "orientation", "vertical") == "horizontal" for c in groups)
    axis = ax.yaxis if flat else ax.xaxis
    numbers = isinstance(axis.get_major_formatter(), ScalarFormatter) and scale_of(axis) != "datetime"
    names = {} if numbers else dict(zip((float(v) for v in axis.get_ticklocs()), (t.get_text() for t in axis.get_ticklabels())))
    elements = []
    for i, group in enumerate(groups):
        for bar in group.patches:
            # A group of several stands beside its tick: the nearest one within its reach is its name.
            middle = bar.get_y() + bar.get_height() / 2 if flat else bar.get_x() + bar.get_width() / 2
            near = min(names, key=lambda v: abs(v - middle), default=None)
            label = names[near] if near is not None and abs(near - middle) < 0.5 and names[near] else \
                f"{middle:.6g}" if numbers else str(at(axis, middle))
            elements.append({"label": label, "group": named(group.get_label(), "Group", i),
                             "value": plain(bar.get_width() if flat else bar.get_height())})
    return {"type": "bar", **plane(ax, flat), "elements": elements}


def pie(ax):
    return {"type": "pie", "elements": [
        {"label": "" if w.get_label().startswith("_") else w.get_label(),
         "angle": plain(round(float(abs(w.theta2 - w.theta1)), 4)),  # single precision: 323.99999
         "radius": plain(w.r)} for w in ax.patches if isinstance(w, Wedge)]}


def boxes(ax):
    kept = ax._warren_boxes
    flat = all(is_flat for _, is_flat in kept)
    elements = []
    for i, (box, _) in enumerate(kept, 1):
        elements.append({
            "label": str(box.get("label") or i), "min": plain(box["whislo"]), "first_quartile": plain(box["q1"]),
            "median": plain(box["med"]), "third_quartile": plain(box["q3"]), "max": plain(box["whishi"]),
            "outliers": [plain(v) for v in box.get("fliers", [])]})
    return {"type": "box_and_whisker", **plane(ax, flat), "elements": elements}
