"""The books and papers on which results rest: one table, as a line of text and as BibTeX."""

from __future__ import annotations

import re
from typing import NamedTuple


class Publication(NamedTuple):
    """where: a journal with its volume and pages, or a publisher. note: the language, if it is not English."""

    authors: tuple[str, ...]
    title: str
    where: str = ""
    year: str = ""
    doi: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """One line."""
        printed = ", ".join(filter(None, [self.where, self.year, f"doi {self.doi}" if self.doi else ""]))
        return ". ".join(filter(None, [", ".join(self.authors), self.title, printed, self.note])) + "."

    @property
    def bibtex(self) -> str:
        """An entry of a .bib file; its key is the first author and the year."""
        place = re.fullmatch(
            r"(?P<journal>.*?) ?(?P<volume>\d+)(\((?P<number>\d+)\))?(, (?P<pages>[\d-]+))?", self.where
        )
        fields = {"author": " and ".join(self.authors), "title": self.title}
        fields |= place.groupdict("") if place else {"publisher": self.where}
        fields |= {"year": self.year, "doi": self.doi, "note": self.note}
        kind = "article" if place else "book" if self.where else "misc"
        rows = "".join(f"  {name} = {{{x}}},\n" for name, x in fields.items() if x)
        return f"@{kind}{{{self.authors[0].split()[-1].lower()}{self.year},\n{rows}}}\n"


SOURCES = {
    "alyushin": Publication(
        ("Yu. A. Alyushin",),
        "On the kinetic energy of a rigid body in the general case of spatial motion with arbitrary rotation",
        "Problemy Mashinostroeniya i Nadezhnosti Mashin 1, 13-25", "2022", note="In Russian",
    ),
    "baumgarte": Publication(
        ("J. Baumgarte",), "Stabilization of constraints and integrals of motion in dynamical systems",
        "Computer Methods in Applied Mechanics and Engineering 1, 1-16", "1972",
    ),
    "featherstone": Publication(("R. Featherstone",), "Rigid Body Dynamics Algorithms", "Springer", "2008"),
    "hairer": Publication(
        ("E. Hairer", "S. P. Norsett", "G. Wanner"),
        "Solving Ordinary Differential Equations I: Nonstiff Problems",
        "Springer", "1993",
    ),
    "khalil": Publication(
        ("W. Khalil", "J.-F. Kleinfinger"),
        "Minimum operations and minimum parameters of the dynamic models of tree structure robots",
        "IEEE Journal of Robotics and Automation 3(6), 517-526", "1987",
    ),
    "kovalchuk": Publication(
        ("A. K. Kovalchuk", "D. B. Kulakov", "S. E. Semenov"),
        "Mathematical description of the kinematics and dynamics of robot mechanisms with tree-like kinematic "
        "structure",
        note="In Russian",
    ),
    "lubich": Publication(
        ("E. Hairer", "C. Lubich", "G. Wanner"), "Geometric Numerical Integration", "Springer", "2006",
    ),
    "luh": Publication(
        ("J. Luh", "M. Walker", "R. Paul"), "On-line computational scheme for mechanical manipulators",
        "ASME Journal of Dynamic Systems, Measurement, and Control 102(2), 69-76", "1980",
    ),
    "singh": Publication(
        ("S. Singh", "R. Russell", "P. Wensing"),
        "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra",
        "IEEE Robotics and Automation Letters 7(2), 1809-1816", "2022",
    ),
    "telegin": Publication(
        ("A. I. Telegin",), "Writing out inertial matrices of hinged tree-shaped systems",
        "Bulletin of the South Ural State University, Ser. Computer Technologies, Automatic Control, Radio "
        "Electronics 25(2), 33-45", "2025", "10.14529/ctcr250203",
    ),
    "udwadia": Publication(
        ("F. E. Udwadia", "R. E. Kalaba"), "A new perspective on constrained motion",
        "Proceedings of the Royal Society of London A 439, 407-410", "1992",
    ),
    "vereshchagin": Publication(
        ("A. F. Vereshchagin",),
        "Computer simulation of the dynamics of complicated mechanisms of robot-manipulators",
        "Engineering Cybernetics 12(6), 65-70", "1974",
    ),
    "zaremba": Publication(
        ("A. T. Zaremba",), "Equations of the dynamics of a manipulator of many links with holonomic constraints",
        year="1990", note="In Russian",
    ),
}  # fmt: skip

FORMALISM: dict[str, tuple[str, ...]] = {
    "newton_euler": ("luh", "khalil"),
    "khalil": ("khalil",),
    "articulated_body": ("featherstone",),
    "vereshchagin": ("vereshchagin",),
    "kovalchuk": ("kovalchuk",),
    "alyushin": ("alyushin",),
    "zaremba": ("zaremba",),
    "planar": ("khalil",),  # whose inertias of fewest parameters it starts from; the rest is Drevo's own
    "telegin": ("telegin",),
}
SWEPT = ("newton_euler", "khalil")  # whose derivatives are pairs of columns of two bodies
METHOD = {"rk4": "hairer", "dop853": "hairer", "midpoint": "lubich", "gauss4": "lubich", "gauss6": "lubich"}


def of_formalism(formalism: str, quantity: str) -> tuple[str, ...]:
    """The names of the sources of a quantity by a formalism."""
    own = FORMALISM.get(formalism, ())
    return (*own, "singh") if quantity.endswith("_derivatives") and formalism in SWEPT else own
