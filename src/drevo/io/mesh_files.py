"""Finds the mesh files of a description: by path, file://, package://, $(find ...). Nothing is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

_URI_SCHEME = re.compile(r"^([a-z]+)://", re.IGNORECASE)
_FOUND = re.compile(
    r"^(?:file://)?\$\(find(?:-pkg-share)?\s+([^\s()]+)\s*\)/*"
)  # as xacro and ROS 2 say package://
VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GAZEBO_MODEL_PATH", "GZ_SIM_RESOURCE_PATH")
MOST_FILES = 20_000  # that are looked at for one that was moved


def find_mesh(uri: str, folder: str) -> str | None:
    """The path of a mesh that a description in `folder` names; None where there is no such file."""
    return next(filter(os.path.isfile, _candidates(uri, folder)), None)


def find_moved(uri: str, folder: str) -> str | None:
    """The one file of that name, in any case of letters, below the folder or the one above; None for several."""
    name, folder = os.path.basename(uri).lower(), os.path.abspath(folder)
    for top in (folder, os.path.dirname(folder)):
        found, seen = [], 0
        for path, _, files in os.walk(top):
            found += [os.path.join(path, file) for file in files if file.lower() == name]
            seen += len(files)
            if seen > MOST_FILES:
                return None
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _candidates(uri: str, folder: str) -> Iterator[str]:
    uri = _FOUND.sub(r"package://\1/", uri)
    folder, scheme = os.path.abspath(folder or "."), _URI_SCHEME.match(uri)
    if "\0" in uri or not uri.strip():
        return
    if scheme is None:
        yield os.path.join(folder, uri)
    elif scheme[1].lower() == "file":
        path = unquote(uri[len("file://") :])
        yield path if os.path.isabs(path) else os.path.join(folder, path)
    else:
        package, _, rest = uri[scheme.end() :].partition("/")
        for above in _above(folder):
            if os.path.basename(above) == package:
                yield os.path.join(above, rest)
            yield os.path.join(above, package, rest)
        for variable in VARIABLES:
            for root in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                yield os.path.join(root, package, rest)
                yield os.path.join(root, "share", package, rest)


def _above(folder: str) -> Iterator[str]:
    while True:
        yield folder
        up = os.path.dirname(folder)
        if up == folder:
            return
        folder = up
