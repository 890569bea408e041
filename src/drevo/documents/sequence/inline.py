"""For people: what a program names only to compute it once stands where it is read, as papers print it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from .expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from .sequence import Section, Sequence

GENERATED = re.compile(r"(?:[Ktw]|phi)\d+|[sc]_phi\d+|q_\d[\d_,]*")
MAX_PRINTED_NAMES = 6  # names of a value that may be printed wherever it is read
_Key = tuple[tuple[str, ...], ...]  # what terms have in common that differ by a number
ROUNDED = 1e-15  # a factor so near 1 is 1 but for rounding
MAX_NAMES_READ_ONCE = 40  # of one that is read once


def inlined(sequence: Sequence, whole: bool = False) -> Sequence:
    """Without generated names, but for those of long values that are read more than once or in a result.

    whole: without these, too.
    """
    uses = Counter(n for s in sequence.statements() for n in {*names_in_terms(s.terms)})
    kept = {n for r in sequence.results for n in names_in_terms(r.entries)}
    put: dict[str, Terms] = {}
    defined: dict[str, Terms] = {}

    def section(given: Section) -> Section:
        out = []
        for s in given.statements:
            terms = shortened(_tidy(_expanded(s.terms, put)), defined)
            if not terms and s.name not in kept:  # a line that would only define a zero
                put[s.name] = ()
                continue
            size = sum(1 for _ in names_in_terms(terms))
            short = size <= MAX_PRINTED_NAMES and (len(terms) == 1 or s.name[0] not in "Ktw")
            small = whole or short or (size <= MAX_NAMES_READ_ONCE and uses[s.name] == 1)
            if GENERATED.fullmatch(s.name) and s.name not in kept and small and not s.also:
                put[s.name] = terms
            else:
                defined[s.name] = terms
                out.append(s._replace(terms=terms))
        return Section(given.title, tuple(out))

    prologue, every = ([*map(section, part)] for part in (sequence.prologue, sequence.main))
    main = _read(every, kept)
    return sequence._replace(prologue=_read(prologue, kept | _names(main)), main=main)


def reduced_sums(sequence: Sequence) -> Sequence:
    """The sequence with sums that are shorter by the definition of one of their terms, which cancels others."""
    kept = {n for r in sequence.results for n in names_in_terms(r.entries)}
    defined: dict[str, Terms] = {}

    def section(given: Section) -> Section:
        out = []
        for s in given.statements:
            defined[s.name] = shortened(s.terms, defined)
            out.append(s._replace(terms=defined[s.name]))
        return Section(given.title, tuple(out))

    prologue, every = ([*map(section, part)] for part in (sequence.prologue, sequence.main))
    if all(defined[s.name] == s.terms for s in sequence.statements()):
        return sequence
    main = _read(every, kept)
    return sequence._replace(prologue=_read(prologue, kept | _names(main)), main=main)


def shortened(terms: Terms, defined: Mapping[str, Terms]) -> Terms:
    """A sum that has fewer terms once a name in it is replaced by its definition: b of a - c where a = b + c."""
    for k, t in enumerate(terms):
        name = next((f.text for f in t.factors if isinstance(f, Name)), "")
        single = sum(isinstance(f, Name) for f in t.factors) == 1 and not t.over
        if len(terms) < 2 or not single or len(defined.get(name, ())) < 2:
            continue
        numbers = tuple(f for f in t.factors if f != Name(name))
        if not all(isinstance(f, Number) for f in numbers):
            continue
        whole = (Term(t.negative != x.negative, (*numbers, *x.factors), x.over) for x in defined[name])
        other = _tidy((*terms[:k], *whole, *terms[k + 1 :]))
        if len(other) < len(terms):
            return shortened(other, defined)
    return terms


def _names(sections: Iterable[Section]) -> set[str]:
    return {n for section in sections for s in section.statements for n in names_in_terms(s.terms)}


def _read(sections: Iterable[Section], read: set[str]) -> tuple[Section, ...]:
    """Without what nothing reads any more, as its terms have cancelled."""
    out, read = list[Section](), {*read}
    for section in reversed([*sections]):
        left = []
        for s in reversed(section.statements):
            if s.name in read:
                read.update(names_in_terms(s.terms))
                left.append(s)
        out += [Section(section.title, tuple(reversed(left)))] if left else []
    return tuple(reversed(out))


def names_in_terms(terms: Terms) -> Iterator[str]:
    """All names, also those in groups and calls."""
    for t in terms:
        for f in (*t.factors, *t.over):
            if isinstance(f, Name):
                yield f.text
            elif isinstance(f, Group):
                yield from names_in_terms(f.terms)
            elif isinstance(f, FunctionCall):
                yield from (*names_in_terms(f.terms), *names_in_terms(f.second))


def _expanded(terms: Terms, put: dict[str, Terms]) -> Terms:
    out: list[Term] = []
    for t in terms:
        only = t.factors[0] if len(t.factors) == 1 and not t.over else None
        if isinstance(only, Name) and len(sub := put.get(only.text, ())) > 1:
            out += (x.flipped() for x in sub) if t.negative else sub
            continue
        negative, factors, over = t.negative, list[Factor](), list[Factor]()
        for given, above, below in ((t.factors, factors, over), (t.over, over, factors)):
            for f in given:
                term = _substitute(f, put)
                negative ^= term.negative
                above += term.factors
                below += term.over
        out.append(Term(negative, tuple(factors), tuple(over)))
    return tuple(out)


def _substitute(f: Factor, put: dict[str, Terms]) -> Term:
    """The term that replaces a factor, after substitution of the given names."""
    if isinstance(f, Name) and f.text in put:
        terms = put[f.text]
        return terms[0] if len(terms) == 1 else Term(False, (Group(terms),))
    if isinstance(f, Group):
        return Term(False, (Group(_tidy(_expanded(f.terms, put))),))
    if isinstance(f, FunctionCall):
        first, second = (_tidy(_expanded(x, put)) for x in (f.terms, f.second))
        return Term(False, (FunctionCall(f.function, first, second),))
    return Term(False, (f,))


def _tidy(terms: Terms) -> Terms:
    """Numbers of a product in one, equal factors side by side, equal terms as a multiple, a positive one first."""
    return _summed(_opened([t for t in map(_product, terms) if Group(()) not in t.factors]))


def _product(t: Term) -> Term:
    """A product without products inside it, its number first."""
    size, factors = -1.0 if t.negative else 1.0, list[Factor]()
    waiting = [*t.factors]
    while waiting:
        f = waiting.pop(0)
        if isinstance(f, Number):
            size *= f.value
        elif isinstance(f, Group) and len(f.terms) == 1 and not f.terms[0].over:
            size = -size if f.terms[0].negative else size
            waiting = [*f.terms[0].factors, *waiting]
        else:
            factors.insert(next((k for k, x in enumerate(factors) if x == f), len(factors)), f)
    return _term(size, *_cancelled(tuple(factors), t.over))


def _cancelled(
    factors: tuple[Factor, ...], over: tuple[Factor, ...]
) -> tuple[tuple[Factor, ...], tuple[Factor, ...]]:
    """A sum over what all its terms hold, without it."""
    only, x = (factors[0], over[0]) if len(factors) == len(over) == 1 else (None, None)
    if x is None or not isinstance(only, Group):
        return factors, over
    if not all(x in t.factors and len(t.factors) > 1 for t in only.terms):
        return factors, over
    at = [t.factors.index(x) for t in only.terms]
    left = (t._replace(factors=t.factors[:k] + t.factors[k + 1 :]) for t, k in zip(only.terms, at))
    return (Group(tuple(left)),), ()


def _opened(terms: list[Term]) -> list[Term]:
    """A sum without the parentheses about sums of its own, those of multiples where a term meets its like."""
    out, single = list[Term](), {_like(t) for t in terms if not _inner(t)}
    for t in terms:
        inner = _inner(t)
        if inner and (len(t.factors) == 1 or any(_like(x) in single for x in inner)):
            out += (_product(Term(t.negative != x.negative, (*t.factors[:-1], *x.factors), x.over)) for x in inner)
        else:
            out.append(t)
    return out


def _inner(t: Term) -> Terms:
    """The sum that a number multiplies, if that is all of a term."""
    *numbers, last = t.factors
    plain = isinstance(last, Group) and not t.over and all(isinstance(f, Number) for f in numbers)
    return last.terms if plain and isinstance(last, Group) else ()


def _like(t: Term) -> _Key:
    """The key of a term without its numbers: equal for terms that differ by a numerical factor only."""
    factors = [f for f in t.factors if not isinstance(f, Number)]
    return tuple(tuple(sorted(map(repr, x))) for x in (factors, t.over))


def _summed(terms: Iterable[Term]) -> Terms:
    """Terms that are alike as one, a positive one first."""
    sizes: dict[_Key, float] = {}
    shown: dict[_Key, Term] = {}
    for t in terms:
        key, size = _like(t), -1.0 if t.negative else 1.0
        for f in t.factors:
            size *= f.value if isinstance(f, Number) else 1.0
        sizes[key] = sizes.get(key, 0.0) + size
        shown.setdefault(key, t)
    bare = {k: tuple(f for f in t.factors if not isinstance(f, Number)) for k, t in shown.items()}
    if whole := _pythagoras(sizes, bare, shown):
        return _summed(whole)
    out = sorted((_term(size, bare[key], shown[key].over) for key, size in sizes.items() if size), key=_place)
    first = next((k for k, t in enumerate(out) if not t.negative), 0)
    return tuple([out[first], *out[:first], *out[first + 1 :]]) if out else ()


def _place(t: Term) -> tuple[int, list[int]]:
    """The place of a term in a sum for people: few factors before many, names of bases before branches."""
    factors = [f for f in (*t.factors, *t.over) if not isinstance(f, Number)]
    first = next((f.text for f in factors if isinstance(f, Name)), "")
    sums = sum(isinstance(f, Group) for f in factors)
    return len(factors) + MAX_PRINTED_NAMES * sums, [int(x) for x in re.findall(r"\d", first)]


def _pythagoras(
    sizes: Mapping[_Key, float], bare: Mapping[_Key, tuple[Factor, ...]], shown: Mapping[_Key, Term]
) -> list[Term]:
    """The terms with x s^2 + x c^2 of one angle as x; empty where there is no such pair."""
    for key, size in sizes.items():
        for name in {f.text for f in bare[key] if isinstance(f, Name) and f.text.startswith("s_")}:
            rest = [f for f in bare[key] if f != Name(name)]
            if len(rest) != len(bare[key]) - 2 or not size:
                continue
            other = _like(Term(False, (*rest, *[Name(f"c_{name[2:]}")] * 2), shown[key].over))
            if sizes.get(other) == size:
                left = [_term(x, bare[k], shown[k].over) for k, x in sizes.items() if x and k not in (key, other)]
                return [*left, _term(size, tuple(rest), shown[key].over)]
    return []


def _term(size: float, factors: tuple[Factor, ...], over: tuple[Factor, ...]) -> Term:
    number = () if abs(abs(size) - 1.0) <= ROUNDED and factors else (Number(abs(size)),)
    return Term(size < 0, (*number, *factors), over)
