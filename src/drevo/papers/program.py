"""The program of Yudintsev's slides for a planar tree of hinges and slides, in MATLAB and in Python.

One function for each thing that the slides name: getA, getArms, getCk, getSk, getWprim, getMkQkiUk (the way back),
dqdt (the way out, right-hand sides of the equations of motion), main (the motion, its plot and its energy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, one_of
from ..mechanics.formalisms.vereshchagin_planar import PlaneBody, plane_bodies
from ..mechanics.tree import plain_tree
from ..model.dynamics import Described

LISTINGS = ("matlab", "python")


def separate_bodies_program(
    robot: Described, language: str = "matlab", q: Sequence[float] | None = None, duration: float = 10.0
) -> dict[str, str]:
    """File name -> text of the slides' program for a robot of hinges across one plane and slides in it.

    q: where the motion of `main` begins, (nq,), rad or m, at rest; zero without it. duration: s. Springs, dampers
    and rotors are not in it. Raises InputError, TraceError (a joint that the plane does not have).
    """
    one_of("language", language, LISTINGS, InputError)
    tree = plain_tree(robot.model, "the planar method of separate bodies")
    if tree.armature:
        raise InputError("separate_bodies_program: the slides' program has no rotors; leave armature out")
    bodies, planes = plane_bodies(tree)
    start = np.zeros(tree.nq) if q is None else np.asarray(q, float)
    if start.shape != (tree.nq,):
        raise InputError(f"separate_bodies_program: q has the shape {start.shape}; it is ({tree.nq},)")
    weights = [(plane @ tree.gravity) * b.m for b, plane in zip(bodies, planes)]
    rows = [_numbers(b, (w.x, w.y)) for b, w in zip(bodies, weights)]
    given = {"order": [float(b.v + 1) for b in bodies], **{k: [row[k] for row in rows] for k in rows[0]}}
    data = {name: [list(map(float, np.atleast_1d(x))) for x in column] for name, column in given.items()}
    name = "".join(c if c.isalnum() or c in " -_." else "_" for c in robot.model.name)  # it stands in comments
    return (_matlab if language == "matlab" else _python)(name, data, start.tolist(), float(duration))


def _numbers(b: PlaneBody, weight: tuple[float, float]) -> dict[str, Any]:
    """Numbers of a body in Model, by name."""
    return {"parent": b.parent + 1, "turn": b.turn, "factor": b.factor, "phase": b.phase, "slide": b.slide,
            "mass": b.m, "J": b.J, "before": b.before, "own": b.own, "force": weight}  # fmt: skip


def _columns(data: dict[str, list[list[float]]], row: str, end: str) -> str:
    """A matrix for each field, a column for each body."""
    lines = []
    for name, column in data.items():
        matrix = [", ".join(repr(x[i]) for x in column) for i in range(len(column[0]))]
        lines.append(row.format(name=name, rows=end.join(matrix)))
    return "\n".join(lines)


def _matlab(name: str, data: dict[str, list[list[float]]], q: list[float], duration: float) -> dict[str, str]:
    columns = _columns(data, "  Model.{name} = [{rows}];", "; ")
    fill = {"@NAME": name, "@MODEL": columns, "@Q": "; ".join(map(repr, q)), "@DURATION": repr(duration)}
    files = {}
    for part in _MATLAB.strip().split("%%% ")[1:]:
        file, _, text = part.partition("\n")
        for mark, value in fill.items():
            text = text.replace(mark, value)
        files[file.strip()] = text.rstrip() + "\n"
    return files


def _python(name: str, data: dict[str, list[list[float]]], q: list[float], duration: float) -> dict[str, str]:
    columns = _columns(data, "    {name}=np.array([[{rows}]]),", "], [")
    fill = {"@NAME": name, "@MODEL": columns, "@Q": ", ".join(map(repr, q)), "@DURATION": repr(duration)}
    text = _PYTHON.lstrip()
    for mark, value in fill.items():
        text = text.replace(mark, value)
    return {"program.py": text}


_MATLAB = r"""
%%% model.m
function Model = model()
% @NAME: a column for each body; parent 0 is the base, turn 0 a slide
@MODEL
end
%%% getA.m
function A = getA(angle)
% turn of the plane by an angle
  A = [cos(angle), -sin(angle); sin(angle), cos(angle)];
end
%%% getTurns.m
function [A, w] = getTurns(q, dq)
% turns of the bodies against the base, and their rates
  global Model
  n = numel(q); A = cell(n, 1); w = zeros(n, 1);
  for k = 1:n
    p = Model.parent(k); A{k} = eye(2);
    if p > 0
      A{k} = A{p}; w(k) = w(p);
    end
    if Model.turn(k) ~= 0
      A{k} = A{k} * getA(Model.turn(k) * (q(k) + Model.phase(k)));
      w(k) = w(k) + Model.turn(k) * dq(k);
    end
  end
end
%%% getArms.m
function [before, own, w0, A0] = getArms(k, q, A, w)
% A_{k-1} c_{k-1,k} and A_k c_kk: from centres of mass to the joint, base axes
  global Model
  p = Model.parent(k); A0 = eye(2); w0 = 0;
  if p > 0
    A0 = A{p}; w0 = w(p);
  end
  before = A0 * (Model.before(:, k) + Model.slide(:, k) * q(k) * (Model.turn(k) == 0));
  own = A{k} * Model.own(:, k);
end
%%% getCk.m
function C = getCk(k, q, A, w)
% (22): acceleration of the parent carried over to body k
  [before, own] = getArms(k, q, A, w);
  C = eye(3); C(1:2, 3) = [0 1; -1 0] * (own - before);
end
%%% getSk.m
function S = getSk(k, q, A, w)
% (25): the acceleration that the joint alone gives
  global Model
  [~, own] = getArms(k, q, A, w);
  if Model.turn(k) ~= 0
    S = Model.turn(k) * [[0 1; -1 0] * own; 1];
  else
    S = [A{k} * Model.slide(:, k); 0];
  end
end
%%% getWprim.m
function W = getWprim(k, q, dq, A, w)
% (27), (28): the acceleration of rates alone; of a slide with that of Coriolis
  global Model
  [before, own, w0] = getArms(k, q, A, w);
  W = [own * w(k)^2 - before * w0^2; 0];
  if Model.turn(k) == 0
    W = W - [2 * w(k) * dq(k) * [0 1; -1 0] * A{k} * Model.slide(:, k); 0];
  end
end
%%% getMkQkiUk.m
function [Mk, Qk, iUk] = getMkQkiUk(q, dq, tau, A, w)
% (17)-(19), tips to base; (18) with the minus sign
  global Model
  n = numel(q); Mk = cell(n, 1); Qk = cell(n, 1); iUk = cell(n, 1);
  for k = 1:n
    Mk{k} = diag([Model.mass(k), Model.mass(k), Model.J(k)]); Qk{k} = [Model.force(:, k); 0];
  end
  for k = n:-1:1
    C = getCk(k, q, A, w); S = getSk(k, q, A, w); W = getWprim(k, q, dq, A, w);
    iUk{k} = 1 / (S' * Mk{k} * S); p = Model.parent(k);
    if p > 0
      a = S * iUk{k} * (S' * (Qk{k} - Mk{k} * W) + tau(k)) + W;
      Mk{p} = Mk{p} + C' * (Mk{k} - Mk{k} * S * iUk{k} * S' * Mk{k}) * C;
      Qk{p} = Qk{p} - C' * (Mk{k} * a - Qk{k});
    end
  end
end
%%% dqdt.m
function dx = dqdt(t, x, tau)
% right-hand sides: rates and accelerations, (20) and (21) from base to tips
  global Model
  if isempty(Model), Model = model(); end
  m = numel(x) / 2; if nargin < 3, tau = zeros(m, 1); end
  order = Model.order; f = Model.factor(:);
  q = f .* x(order); dq = f .* x(m + order); e = f .* tau(order);
  [A, w] = getTurns(q, dq); [Mk, Qk, iUk] = getMkQkiUk(q, dq, e, A, w);
  dx = [x(m+1:end); zeros(m, 1)]; a = cell(m, 1);
  for k = 1:m
    C = getCk(k, q, A, w); S = getSk(k, q, A, w); a0 = zeros(3, 1);
    if Model.parent(k) > 0, a0 = a{Model.parent(k)}; end
    free = C * a0 + getWprim(k, q, dq, A, w);
    ddq = iUk{k} * (e(k) + S' * (Qk{k} - Mk{k} * free));
    a{k} = free + S * ddq; dx(m + order(k)) = f(k) * ddq;
  end
end
%%% energy.m
function E = energy(x)
% kinetic and potential energy, J
  global Model
  m = numel(x) / 2; order = Model.order; f = Model.factor(:);
  q = f .* x(order); dq = f .* x(m + order); [A, w] = getTurns(q, dq);
  E = 0; r = cell(m, 1); v = cell(m, 1);
  for k = 1:m
    [before, own, w0, A0] = getArms(k, q, A, w); p = Model.parent(k);
    r{k} = before - own; v{k} = [0 -1; 1 0] * (w0 * before - w(k) * own);
    if p > 0
      r{k} = r{k} + r{p}; v{k} = v{k} + v{p};
    end
    if Model.turn(k) == 0, v{k} = v{k} + A0 * Model.slide(:, k) * dq(k); end
    E = E + 0.5 * Model.mass(k) * (v{k}' * v{k}) + 0.5 * Model.J(k) * w(k)^2 - Model.force(:, k)' * r{k};
  end
end
%%% main.m
% the motion of @NAME from rest, its coordinates and its energy
global Model
Model = model();
q0 = [@Q]; x0 = [q0; zeros(size(q0))];
options = odeset('RelTol', 1e-9, 'AbsTol', 1e-11);
[t, x] = ode45(@dqdt, [0 @DURATION], x0, options);
E = zeros(size(t));
for i = 1:numel(t), E(i) = energy(x(i, :)'); end
subplot(2, 1, 1); plot(t, x(:, 1:numel(q0))); xlabel('t, s'); ylabel('q, rad or m');
subplot(2, 1, 2); plot(t, E - E(1)); xlabel('t, s'); ylabel('E - E_0, J');
"""

_PYTHON = r'''
"""@NAME by the planar method of separate bodies: Yudintsev's slides, their functions by their names."""

from types import SimpleNamespace

import numpy as np

# a column for each body; parent 0 is the base, turn 0 a slide
Model = SimpleNamespace(
@MODEL
)
BACK = np.array([[0.0, 1.0], [-1.0, 0.0]])  # A_{-pi/2}


def getA(angle):
    """Turn of the plane by an angle."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def getTurns(q, dq):
    """Turns of the bodies against the base, and their rates."""
    A, w = [], []
    for k, p in enumerate(Model.parent[0].astype(int) - 1):
        turn = Model.turn[0, k]
        A.append((A[p] if p >= 0 else np.eye(2)) @ getA(turn * (q[k] + Model.phase[0, k])))
        w.append((w[p] if p >= 0 else 0.0) + turn * dq[k])
    return A, w


def getArms(k, q, A, w):
    """A_{k-1} c_{k-1,k} and A_k c_kk, from centres of mass to the joint, base axes; the parent's rate and turn."""
    p = int(Model.parent[0, k]) - 1
    A0, w0 = (A[p], w[p]) if p >= 0 else (np.eye(2), 0.0)
    before = A0 @ (Model.before[:, k] + Model.slide[:, k] * q[k] * (Model.turn[0, k] == 0))
    return before, A[k] @ Model.own[:, k], w0, A0


def getCk(k, q, A, w):
    """(22): acceleration of the parent carried over to body k."""
    before, own, _, _ = getArms(k, q, A, w)
    C = np.eye(3)
    C[:2, 2] = BACK @ (own - before)
    return C


def getSk(k, q, A, w):
    """(25): the acceleration that the joint alone gives."""
    _, own, _, _ = getArms(k, q, A, w)
    turn = Model.turn[0, k]
    return turn * np.r_[BACK @ own, 1.0] if turn else np.r_[A[k] @ Model.slide[:, k], 0.0]


def getWprim(k, q, dq, A, w):
    """(27), (28): the acceleration of rates alone; of a slide with that of Coriolis."""
    before, own, w0, _ = getArms(k, q, A, w)
    W = np.r_[own * w[k] ** 2 - before * w0**2, 0.0]
    if Model.turn[0, k] == 0:
        W[:2] -= 2.0 * w[k] * dq[k] * BACK @ A[k] @ Model.slide[:, k]
    return W


def getMkQkiUk(q, dq, tau, A, w):
    """(17)-(19), tips to base; (18) with the minus sign."""
    n = len(q)
    Mk = [np.diag([Model.mass[0, k], Model.mass[0, k], Model.J[0, k]]) for k in range(n)]
    Qk, iUk = [np.r_[Model.force[:, k], 0.0] for k in range(n)], [0.0] * n
    for k in reversed(range(n)):
        C, S, W = getCk(k, q, A, w), getSk(k, q, A, w), getWprim(k, q, dq, A, w)
        iUk[k], p = 1.0 / (S @ Mk[k] @ S), int(Model.parent[0, k]) - 1
        if p >= 0:
            a = S * iUk[k] * (S @ (Qk[k] - Mk[k] @ W) + tau[k]) + W
            Mk[p] = Mk[p] + C.T @ (Mk[k] - np.outer(Mk[k] @ S, S @ Mk[k]) * iUk[k]) @ C
            Qk[p] = Qk[p] - C.T @ (Mk[k] @ a - Qk[k])
    return Mk, Qk, iUk


def dqdt(t, x, tau=None):
    """Right-hand sides: rates and accelerations, (20) and (21) from base to tips."""
    m, order, f = len(x) // 2, Model.order[0].astype(int) - 1, Model.factor[0]
    tau = np.zeros(m) if tau is None else np.asarray(tau)
    q, dq, e = f * x[order], f * x[m + order], f * tau[order]
    A, w = getTurns(q, dq)
    Mk, Qk, iUk = getMkQkiUk(q, dq, e, A, w)
    dx, a = np.r_[x[m:], np.zeros(m)], []
    for k, p in enumerate(Model.parent[0].astype(int) - 1):
        C, S = getCk(k, q, A, w), getSk(k, q, A, w)
        free = C @ (a[p] if p >= 0 else np.zeros(3)) + getWprim(k, q, dq, A, w)
        ddq = iUk[k] * (e[k] + S @ (Qk[k] - Mk[k] @ free))
        a.append(free + S * ddq)
        dx[m + order[k]] = f[k] * ddq
    return dx


def energy(x):
    """Kinetic and potential energy, J."""
    m, order, f = len(x) // 2, Model.order[0].astype(int) - 1, Model.factor[0]
    q, dq = f * x[order], f * x[m + order]
    A, w = getTurns(q, dq)
    E, r, v = 0.0, [], []
    for k, p in enumerate(Model.parent[0].astype(int) - 1):
        before, own, w0, A0 = getArms(k, q, A, w)
        r.append(before - own + (r[p] if p >= 0 else 0.0))
        v.append(-BACK @ (w0 * before - w[k] * own) + (v[p] if p >= 0 else 0.0))
        if Model.turn[0, k] == 0:
            v[k] = v[k] + A0 @ Model.slide[:, k] * dq[k]
        E += 0.5 * Model.mass[0, k] * v[k] @ v[k] + 0.5 * Model.J[0, k] * w[k] ** 2 - Model.force[:, k] @ r[k]
    return E


if __name__ == "__main__":
    from scipy.integrate import solve_ivp

    start = np.r_[[@Q], np.zeros(Model.order.shape[1])]
    motion = solve_ivp(dqdt, (0.0, @DURATION), start, "DOP853", rtol=1e-9, atol=1e-11)
    print("t =", motion.t[-1], "s; energy drifts by", energy(motion.y[:, -1]) - energy(start), "J")
'''
