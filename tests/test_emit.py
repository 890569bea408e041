"""Written-out texts: the numbers, the counts, and what they make of names that mean harm."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from counter import count
from strategies import seeds

from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.compiler.pages.derivation import Derivation, write_out_program
from drevo.compiler.trace import trace
from drevo.errors import InputError, NumericsError
from drevo.mechanics.scalar import cos, sin
from drevo.model.description import Inertial, Joint, Link, Model
from drevo.model.quantities import CATALOGUE

GOLDEN = Path(__file__).parent / "data" / "golden"
KINDS = ("revolute", "prismatic", "helical", "spherical", "revolute")
CHOICES: tuple[tuple[str, ...], ...] = ((), ("*",), ("*.mass", "*.origin.*"))
HOSTILE = (
    'a*/ int x; /*"""', "</script><img src=x onerror=alert(1)>", "\\end{document}{%$#_^&~", "new\nline\r\\",
    "constants", "q", "''' ??/ `|`", "сустав\u202e\ud800", "lambda", "9 lives", "$$ x", "x_{1}^{2}",
)  # fmt: skip


def rotation(rng: np.random.Generator) -> Any:
    """A random rotation; a quarter turn now and then."""
    if rng.random() < 0.4:
        return ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    q[:, 0] *= np.linalg.det(q)
    return tuple(map(tuple, q.tolist()))


def random_model(seed: int, n: int, kinds: tuple[str, ...] = KINDS, names: tuple[str, ...] = ()) -> Model:
    """A random tree; `names` for its links and joints."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("world")], []
    for i in range(n):
        half = rng.normal(size=(6, 3)) * 0.3
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1, 1]) if rng.random() < 0.5 else rng.normal(size=3)
        axis = axis / np.linalg.norm(axis)
        label = names[i] if names else str(i + 1)
        inertial = Inertial(
            float(rng.uniform(0.3, 3)), tuple(rng.normal(size=3) * 0.2), tuple(map(tuple, half.T @ half))
        )
        parent = links[0 if i == 0 else int(rng.integers(max(0, i - 2), i)) + 1].name
        links.append(Link(f"l{label}", inertial))
        kind = str(rng.choice(kinds))
        joints.append(
            Joint(f"j{label}", kind, parent, f"l{label}", tuple(rng.normal(size=3) * 0.3), rotation(rng),
                  tuple(axis), lead=0.1 if kind == "helical" else 0.0)
        )  # fmt: skip
    return Model(f"random {''.join(names)}", tuple(links), tuple(joints))


def program_of(model: Model, name: str, symbols: tuple[str, ...] = ()) -> Program:
    options = {"link": model.links[-1].name} if "link" in CATALOGUE[name].options else None
    return trace(model, name, parameters=symbols, options=options)


def states(program: Program, lead: tuple[int, ...] = (), seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Random arguments, quaternions of length one."""
    rng = np.random.default_rng(seed)
    out = {p.name: rng.normal(size=(*lead, p.size)) for p in program.inputs}
    for unit in program.units:
        at = program.inputs[0].nodes.index(unit[0])
        quaternion = out["q"][..., at : at + 4]
        quaternion /= np.linalg.norm(quaternion, axis=-1, keepdims=True)
    return out


def close(got: Any, expected: Any, tolerance: float = 1e-13) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    assert float(np.max(np.abs(got - expected), initial=0.0)) <= tolerance * scale


SIX_RATES = ("operational_inertia", "operational_space")  # which random robots have not


def results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in SIX_RATES])
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_text_agrees_with_graph_in_numbers_and_counts(name: str, seed: int) -> None:
    """The written-out sequence computes what the graph computes, with the operations that it claims."""
    model = random_model(seed, seed + 1, ("revolute",) if seed == 3 else KINDS)
    for symbols in CHOICES:
        program = program_of(model, name, symbols)
        d = write_out_program(program)
        given = states(program, (3,))
        for got, expected in zip(results(d.evaluate(**given)), evaluate(program, given).values()):
            close(
                got,
                expected,
                1e-10 if any(x in name for x in ("forward", "inverse_mass", "operational")) else 1e-13,
            )
        assert count(d.python()) == {k: d.counts[k] for k in ("add", "mul", "div", "trig", "angle_sums")}


def angles() -> Program:
    """Sums of angles of every kind: nested, with phases, with factors, as differences, and as results too."""
    g = Graph()
    q = [g.input(f"q[{i}]") for i in range(6)]
    a = q[1] + q[2]
    b = a + q[3]
    c, d, e, f = q[0] + 1.5, q[5] * 0.5 + q[0], q[1] - q[5], q[4] + q[5]
    y = [sin(a) * cos(a), sin(b) + cos(b), sin(b + q[4]), sin(c), cos(c), sin(d) * cos(d), sin(e), cos(e), f,
         sin(f), cos(-a - q[5]), sin(-q[1] - q[2] - q[5]), -q[2], 0.0, (sin(q[0]) - 1.5) * (0.5 - cos(q[0])),
         2.0 * sin(q[3]) * cos(q[1]), -cos(q[1]) - sin(q[3]), 1.0 / cos(q[0]),
         sin(q[0]) / (cos(q[0]) - 3.0)]  # fmt: skip
    port = Input("q", (6,), tuple(x.edge >> 1 for x in q))
    return Program("angles", g, (port,), (), (Output("y", (len(y),), tuple(g.edge(x) for x in y)),))


def test_every_form_of_angle_is_counted_once() -> None:
    """An angle sum is an angle sum wherever it is written, and never an addition."""
    program = angles()
    d = write_out_program(program)
    given = states(program, (2, 3))
    close(d.evaluate(**given), evaluate(program, given)["y"])
    assert count(d.python()) == {k: d.counts[k] for k in ("add", "mul", "div", "trig", "angle_sums")}
    assert "s_234 = sin(q_234 :=" in d.python()


def compiled(text: str, folder: Path, flags: str, suffix: str = ".c") -> ctypes.CDLL:
    source = folder / f"text{suffix}"
    source.write_text(text, encoding="utf-8")
    command = ["g++" if suffix == ".cpp" else "gcc", *flags.split(), "-shared", "-fPIC", str(source), "-lm",
               "-o", str(folder / "text.so")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(folder / "text.so"))


def pointers(*arrays: np.ndarray[Any, Any]) -> list[Any]:
    return [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]


def constants_of(d: Derivation, library: ctypes.CDLL) -> list[np.ndarray[Any, Any]]:
    """The hoisted work, done by the prologue."""
    if not d.sequence.symbols:
        return []
    constants = np.zeros(len(d.sequence.constants) + 1)
    values = np.array([s.parameter.value for s in d.sequence.symbols])
    getattr(library, f"{d.program.name}_prologue")(*pointers(values, constants))
    return [constants]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(
    "name", ["mass_matrix", "inverse_dynamics", "kinetic_energy", "inverse_dynamics_derivatives"]
)
@pytest.mark.parametrize("symbols", CHOICES[:2])
def test_c_agrees_with_graph(name: str, symbols: tuple[str, ...], tmp_path: Path) -> None:
    """C99 without a warning, and the same numbers."""
    program = program_of(random_model(5, 4), name, symbols)
    d = write_out_program(program)
    library = compiled(d.c(), tmp_path, "-std=c99 -Wall -Werror -pedantic -O1")
    given = states(program)
    out = [np.zeros((*o.shape, 1)) for o in program.outputs]
    getattr(library, program.name)(*pointers(*given.values(), *constants_of(d, library), *out))
    for got, expected in zip(out, evaluate(program, given).values()):
        close(got[..., 0], expected, 1e-14)


SHIM = """#include <cmath>
using std::sin; using std::cos;
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
static struct { int x; } blockIdx = {0}, blockDim = {1}, gridDim = {1}, threadIdx = {0};
"""


@pytest.mark.needs("g++")
def test_cuda_text_in_both_layouts(tmp_path: Path) -> None:
    """The kernels, run by one thread on the CPU."""
    program = program_of(random_model(6, 3), "inverse_dynamics", ("*",))
    d = write_out_program(program)
    library = compiled(SHIM + d.cuda(), tmp_path, "-Wall -Werror", ".cpp")
    given, n = states(program, (5,)), 5
    expected, constants = evaluate(program, given)["tau"], constants_of(d, library)
    rows, last = np.zeros(expected.shape), np.zeros(expected.shape[::-1])
    library.inverse_dynamics_rows(*pointers(*given.values(), *constants, rows), ctypes.c_longlong(n))
    turned = [np.ascontiguousarray(x.T) for x in given.values()]
    library.inverse_dynamics_batch_last(*pointers(*turned, *constants, last), ctypes.c_longlong(n))
    close(rows, expected)
    close(last.T, expected)


class Tags(HTMLParser):
    """Every tag that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "input"):
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack and self.stack.pop() == tag


def check_html(text: str) -> None:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.stack == [] and "img" not in tags.seen
    assert tags.seen.count("script") == (4 if "LOADERS" in text else 1)  # its own: data, core, page, tabs
    assert "http" not in text


def check_latex(text: str) -> None:
    bare = re.sub(r"\\[{}]", "", text)
    depth = 0
    for c in bare:
        depth += (c == "{") - (c == "}")
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\end{document}") == 1
    opened, closed = re.findall(r"\\begin\{(\w+\*?)\}", text), re.findall(r"\\end\{(\w+\*?)\}", text)
    assert sorted(opened) == sorted(closed)


def test_documents_are_well_formed() -> None:
    """HTML that closes what it opens and asks nothing of a network; LaTeX with balanced braces."""
    for name in ("mass_matrix", "inverse_dynamics_derivatives", "pose", "potential_energy"):
        for symbols in CHOICES[:2]:
            d = write_out_program(program_of(random_model(7, 3), name, symbols), checks=[("a < b & c", 1e-15, 9)])
            check_html(d.html())
            check_latex(d.latex())
            assert d.markdown().count("$$") % 2 == 0


def harmful(name: str) -> tuple[Program, Derivation]:
    program = program_of(random_model(8, len(HOSTILE), ("revolute", "prismatic"), HOSTILE), name, ("*",))
    return program, write_out_program(program)


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("name", ["inverse_dynamics", "potential_energy"])
def test_c_with_names_that_mean_harm(name: str, tmp_path: Path) -> None:
    compiled(harmful(name)[1].c(), tmp_path, "-std=c99 -Wall -Werror -pedantic")


@pytest.mark.parametrize("name", ["inverse_dynamics", "potential_energy"])
def test_names_that_mean_harm(name: str, tmp_path: Path) -> None:
    """A name breaks no comment, string, tag, table or identifier."""
    program, d = harmful(name)
    given = states(program)
    close(d.evaluate(**given), next(iter(evaluate(program, given).values())))
    compile(d.python(), "text", "exec")
    assert count(d.python())["mul"] == d.counts["mul"]
    check_html(d.html())
    check_latex(d.latex())
    assert "<img" not in d.markdown().replace(r"\<img", "")
    for line in d.matlab().splitlines():
        assert line.isprintable()
    for suffix in ("py", "c", "cu", "m", "tex", "md", "html"):
        assert d.save(tmp_path / f"x.{suffix}").stat().st_size > 500


def test_external_wrenches_are_arguments() -> None:
    """f_ext is given by link and written as an argument of its own."""
    model = random_model(9, 3)
    program = trace(model, "inverse_dynamics", external=[model.links[-1].name])
    d = write_out_program(program)
    given = states(program)
    link = model.links[-1].name
    state = {k: given[k] for k in ("q", "v", "a")}
    close(d.evaluate(**state, f_ext={link: given[f"f_ext:{link}"]}), evaluate(program, given)["tau"])


def test_refusals_say_what_is_wrong(tmp_path: Path) -> None:
    """Wrong arguments, shapes, suffixes and quaternions are refused by name."""
    d = write_out_program(program_of(random_model(10, 3, ("spherical",)), "mass_matrix"))
    with pytest.raises(InputError, match="'q' is missing"):
        d.evaluate()
    with pytest.raises(InputError, match=r"\(\.\.\., 12\)"):
        d.evaluate(q=np.zeros(5))
    with pytest.raises(InputError, match="no argument"):
        d.evaluate(q=np.zeros(12), v=np.zeros(9))
    with pytest.raises(InputError, match="no parameter is symbolic"):
        d.evaluate(q=states(d.program)["q"], parameters={"l1.mass": 2.0})
    with pytest.raises(NumericsError, match="length 0"):
        d.evaluate(q=np.zeros((2, 12)))
    with pytest.raises(InputError, match=r"\.md.*x\.docx"):
        d.save(tmp_path / "x.docx")


def test_parameters_may_be_overridden() -> None:
    """Other values give the numbers of the other robot."""
    model = random_model(11, 2, ("revolute",))
    program = program_of(model, "mass_matrix", ("l2.mass",))
    given = states(program)
    got = write_out_program(program).evaluate(**given, parameters={"l2.mass": 7.5})
    close(got, evaluate(program, given, {"l2.mass": 7.5})["M"])


def test_sympy_is_the_same_function() -> None:
    """Expressions of SymPy, evaluated, are the matrix."""
    program = program_of(random_model(12, 2, ("revolute",)), "mass_matrix", ("*.mass",))
    d = write_out_program(program)
    M, given = d.sympy()["M"], states(program)
    values = {sympy.Symbol(f"q_{i + 1}"): x for i, x in enumerate(given["q"])}
    values |= {sympy.Symbol(d.sequence.identifiers[s.name]): s.parameter.value for s in d.sequence.symbols}
    close(np.array(M.subs(values), float), evaluate(program, given)["M"])


def planar() -> Program:
    """Two links in a vertical plane; the program is made by hand, so that its writing alone is tested."""
    g = Graph()
    q = [g.input("q[0]"), g.input("q[1]")]
    named = {
        "link1.inertia.zz": 0.5,
        "link2.inertia.zz": 0.25,
        "joint2.origin.x": 0.75,
        "link2.mass": 1.5,
        "link2.com.x": 0.4,
    }
    p = {name: g.parameter(name) for name in named}
    length, moment = p["joint2.origin.x"], p["link2.mass"] * p["link2.com.x"]
    at_link1 = len(g)
    m = length * (moment * cos(q[1]))
    H22 = p["link2.inertia.zz"] + moment * p["link2.com.x"]
    H21 = H22 + m
    H11 = p["link1.inertia.zz"] + p["link2.mass"] * length * length + H22 + 2.0 * m
    V = (moment * sin(q[0] + q[1]) + p["link2.mass"] * length * sin(q[0])) * 9.81
    labels = {moment.edge >> 1: (("d_x2", 0),), m.edge >> 1: (("m_22^e", 0), ("m_e", 0))}
    entries = tuple(g.edge(x) for x in (H11, H21, H21, H22))
    return Program(
        "planar", g, (Input("q", (2,), tuple(x.edge >> 1 for x in q)),),
        tuple(Parameter(n, x.edge >> 1, named[n]) for n, x in p.items()),
        (Output("H", (2, 2), entries), Output("V", (), (g.edge(V),))), labels, ((at_link1, "link 2 (link2)"),),
        meta={"robot": "planar two-link", "quantity": "planar", "formalism": "telegin",
              "numbers": {"link1": "1", "joint2": "2"}},
    )  # fmt: skip


def golden() -> dict[str, str]:
    d = write_out_program(planar(), checks=[("the plain recursion", 2.2e-16, 32)])
    return {"planar.py.txt": d.python(), "planar.c": d.c(), "planar.tex": d.latex(), "planar.md": d.markdown()}


@pytest.mark.parametrize("name", ["planar.py.txt", "planar.c", "planar.tex", "planar.md"])
def test_golden_text(name: str) -> None:
    """Emitted text is reviewed: `python tests/test_emit.py --update` rewrites it."""
    assert golden()[name] == (GOLDEN / name).read_text(encoding="utf-8")


def digest() -> str:
    d = write_out_program(program_of(random_model(13, 4), "inverse_dynamics", ("*",)))
    return "".join((d.python(), d.c(), d.latex(), d.html()))


def test_same_text_in_every_process() -> None:
    """Neither a second run nor another hash seed changes a character."""
    program = "import hashlib, test_emit; print(hashlib.sha256(test_emit.digest().encode()).hexdigest())"
    found = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                       cwd=Path(__file__).parent, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert len(found) == 1 and digest() == digest()


def test_a_long_sum_is_no_deep_recursion() -> None:
    """20,000 nodes in a chain are written in seconds."""
    g = Graph()
    q = [g.input("q[0]"), g.input("q[1]")]
    x: Any = q[0]
    for k in range(10_000):
        x = x * q[k % 2] + q[(k + 1) % 2]
    port = Input("q", (2,), tuple(e.edge >> 1 for e in q))
    d = write_out_program(Program("long", g, (port,), (), (Output("y", (), (g.edge(x),)),)))
    assert count(d.python())["mul"] == d.counts["mul"] >= 9_600
    assert len(d.latex()) > 33_000


if __name__ == "__main__" and "--update" in sys.argv:
    for file, text in golden().items():
        (GOLDEN / file).write_text(text, encoding="utf-8", newline="\n")
