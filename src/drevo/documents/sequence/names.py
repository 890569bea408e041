"""Names in the grammar of the paper (omega_3x, m_22^e, s_23) as identifiers, LaTeX and MathML.

A name is BASE_SUBSCRIPT^SUPERSCRIPT. Names come from robots and files: nothing in them is trusted.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from ...codegen.graph.ops import FUNCTIONS

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ",
    "Xi": "Ξ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "star": "∗", "prime": "′",
}  # fmt: skip
LATEX_VARIANTS = {"epsilon": "varepsilon"}  # ε, which mechanics writes, not ϵ
_BASES = {
    "Minv": ("M", "-1"), "Lambdainv": ("Lambda", "-1"), "ell": ("ell", ""),
    "Wk": ("W", "k"), "Wp": ("W", "p"), "We": ("W", "e"),
}  # fmt: skip
_GRAMMAR = re.compile(r"([^_^]*)(?:_([^^]*))?(?:\^(.*))?", re.DOTALL)
_PARTIAL_PATTERN = re.compile(r"d([A-Za-z]+)_d([A-Za-z]+)(?:_(.*))?")
_LETTERS_DIGITS = re.compile(r"([A-Za-z]+)(\d+)")

# words that a target reads as its own; one list, so that a name is the same in every language
_RESERVED_WORDS = """sin cos sqrt atan2 pi inf nan i j e I E N abs math numpy np parameters constants prologue self
    print out stride auto char const double enum extern float goto inline int long register restrict short signed
    sizeof static struct switch typedef union unsigned void volatile do case default bool true false NULL main
    j0 j1 jn y0 y1 yn template class public private new delete this operator using namespace typename virtual catch
    throw end function otherwise persistent global parfor spmd step n at threadIdx blockIdx blockDim gridDim
    when unless"""
RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *_RESERVED_WORDS.split(), *FUNCTIONS.values()))


def identifier(name: str) -> str:
    """A name as an identifier of every target language."""
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")[:48] or "x"
    text = text if text[0].isalpha() else f"x{text}"
    return f"{text}_" if text in RESERVED else text


def plain(text: str) -> str:
    """Any text as one line without control, format or surrogate characters."""
    return "".join(c if c.isprintable() else " " for c in text)


@dataclass(slots=True)
class Names:
    """Gives every value a name whose identifier is unique, whatever names it is asked for."""

    taken: set[str] = field(default_factory=set)
    identifiers: dict[str, str] = field(default_factory=dict)  # name -> identifier
    _next: dict[str, int] = field(default_factory=dict)

    def new(self, wanted: str) -> str:
        """`wanted`, or wanted_2, wanted_3, ... when its identifier is taken."""
        name, k = wanted, self._next.get(wanted, 2)
        while name in self.identifiers or identifier(name) in self.taken:
            base, mark, rest = wanted.partition("^")
            name = f"{base}_{k}{mark}{rest}"
            k += 1
        self._next[wanted] = k
        self.taken.add(identifier(name))
        self.identifiers[name] = identifier(name)
        return name

    def apart(self, name: str) -> str:
        """Another name for the identifier of a name, which is free for another one."""
        other = f"{name}[]"
        self.identifiers[other] = self.identifiers.pop(name)
        return other

    def called(self, name: str, known: str) -> str:
        """The name, for the identifier of a known one, which stands for it no longer."""
        self.identifiers[name] = self.identifiers.pop(known)
        return name

    def next(self, letter: str) -> str:
        """The first free one of t1, t2, ..."""
        k = self._next.get(letter, 1)
        while f"{letter}{k}" in self.taken:
            k += 1
        self._next[letter] = k + 1
        return f"{letter}{k}"


@lru_cache(maxsize=65536)
def parts(name: str) -> tuple[str, str, str]:
    """Base, subscript and superscript; derivatives get a base of the form dA/dB."""
    partial = _PARTIAL_PATTERN.fullmatch(name)
    if partial:
        return f"{partial[1]}/{partial[2]}", _commas(partial[3] or ""), ""
    match = _GRAMMAR.fullmatch(name)
    base, sub, sup = (match[1] or "", match[2] or "", match[3] or "") if match else (name, "", "")
    digits = _LETTERS_DIGITS.fullmatch(base)
    if digits and not sub:
        base, sub = digits[1], digits[2]
    if base in _BASES:
        base, extra = _BASES[base]
        sup = ",".join(s for s in (extra, sup) if s)
    return base, _commas(sub), _commas(sup)


def _commas(sub: str) -> str:
    return sub.replace("_", ",")


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Any text, safe in LaTeX's text mode."""
    return "".join(_LATEX.get(c, c) for c in plain(text))


@lru_cache(maxsize=65536)
def carrier(pair: str) -> str:
    """The second body of a pair of subscripts: 2 of 32, 3 of 10,3."""
    return re.split(r"[,_]", pair)[-1] if re.search(r"[,_]", pair) else pair[len(pair) // 2 :]


def latex_name(name: str) -> str:
    """omega_3x -> \\omega_{3x}; m_22^e -> m_{22}^{e}; Lm_32^e is the product of L_2 and m_32^e."""
    base, sub, sup = parts(name)
    if base == "Lm" and sub:
        return rf"{latex_name(f'L_{carrier(sub)}')}\,{latex_name(f'm_{sub}^{sup}')}"
    text = _latex_base(base)
    if sub:
        text += "_{" + _latex_script(sub) + "}"
    if sup:
        text += "^{" + _latex_script(sup) + "}"
    return text


def _latex_base(base: str) -> str:
    if "/" in base and len(base) > 2:
        a, b = base.split("/", 1)
        return rf"(\partial {_latex_base(a)}/\partial {_latex_base(b)})"
    if base in GREEK or base == "ell":
        return "\\" + LATEX_VARIANTS.get(base, base)
    if len(base) == 1 and base.isascii() and base.isalpha():
        return base
    return (r"\mathrm{" if base.isascii() and base.isalnum() else r"\text{") + latex_text(base) + "}"


def _latex_script(text: str) -> str:
    words = re.split(r"([A-Za-z]{2,})", text)
    return "".join(_latex_word(w) for w in words)


def _latex_word(word: str) -> str:
    if word in GREEK:
        return "\\" + word + " "
    if len(word) > 3 and word.isalpha():
        return r"\mathrm{" + latex_text(word) + "}"
    return "".join(_latex_letter(c) for c in word)


def _latex_letter(c: str) -> str:
    return c if (c.isascii() and c.isalnum()) or c in ",-" else r"\text{" + latex_text(c) + "}"


@lru_cache(maxsize=65536)
def mathml_name(name: str) -> str:
    """Writes a name such as omega_3x as presentation MathML; Lm_32^e is the product of L_2 and m_32^e."""
    base, sub, sup = parts(name)
    if base == "Lm" and sub:
        factors = mathml_name(f"L_{carrier(sub)}") + mathml_name(f"m_{sub}^{sup}")
        return f"<mrow>{factors}</mrow>"
    core = _mathml_base(base)
    lower, upper = f"<mi>{_mathml_script(sub)}</mi>", f"<mi>{_mathml_script(sup)}</mi>"
    if sub and sup:
        return f"<msubsup>{core}{lower}{upper}</msubsup>"
    if sub or sup:
        tag, script = ("msub", lower) if sub else ("msup", upper)
        return f"<{tag}>{core}{script}</{tag}>"
    return core


def _mathml_base(base: str) -> str:
    if "/" in base and len(base) > 2:
        a, b = base.split("/", 1)
        return f"<mfrac><mrow><mo>∂</mo>{_mathml_base(a)}</mrow><mrow><mo>∂</mo>{_mathml_base(b)}</mrow></mfrac>"
    if base == "ell":
        return "<mi>ℓ</mi>"
    return f"<mi>{escape(plain(GREEK.get(base, base)))}</mi>"


def _mathml_script(text: str) -> str:
    return escape(plain(re.sub(r"[A-Za-z]{2,}", lambda m: GREEK.get(m[0], m[0]), text)))
