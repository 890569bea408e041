"""Draws docs/chain.svg: the chain of Yudintsev's slides, simulated by Drevo, animated without a library.

python docs/render.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import drevo

RODS, SECONDS, STEP, FRAME = 10, 8.0, 1e-4, 0.04
SCALE, CENTER = 240.0, (260.0, 30.0)
TRAIL = 14  # frames that the tip leaves behind


def simulate(robot: drevo.Robot) -> tuple[np.ndarray[Any, Any], float]:
    """Frames of q by Runge and Kutta's fourth order, and the drift of the energy relative to its range."""
    q, v, tau = np.zeros(RODS), np.zeros(RODS), np.zeros(RODS)
    q[0] = -0.25
    every, frames, energies = round(FRAME / STEP), [], []
    for k in range(round(SECONDS / STEP)):
        if k % every == 0:
            frames.append(q)
            energies.append(float(robot.kinetic_energy(q, v) + robot.potential_energy(q)))
        k1 = robot.forward_dynamics(q, v, tau)
        k2 = robot.forward_dynamics(q + STEP / 2 * v, v + STEP / 2 * k1, tau)
        k3 = robot.forward_dynamics(q + STEP / 2 * v + STEP**2 / 4 * k1, v + STEP / 2 * k2, tau)
        k4 = robot.forward_dynamics(q + STEP * v + STEP**2 / 2 * k2, v + STEP * k3, tau)
        q = q + STEP * v + STEP**2 / 6 * (k1 + k2 + k3)
        v = v + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    lowest = float(robot.potential_energy(np.array([-np.pi / 2, *[0.0] * (RODS - 1)])))
    return np.array(frames), float(np.ptp(energies)) / abs(lowest)


def joints(frames: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Points of the picture, (frames, rods + 1, 2)."""
    angles = np.cumsum(frames, axis=-1)
    steps = np.stack([np.cos(angles), -np.sin(angles)], -1) / RODS * SCALE
    start = np.broadcast_to(np.array(CENTER), (len(frames), 1, 2))
    return np.concatenate([start, start + np.cumsum(steps, axis=1)], axis=1)


def picture(points: np.ndarray[Any, Any], drift: float) -> str:
    """The animation, looping."""
    count = len(points)
    trails = [points[np.maximum(0, np.arange(k - TRAIL, k + 1)), -1] for k in range(count)]
    dots = "".join(
        f'<circle r="4" cx="{points[0, k, 0]:.0f}" cy="{points[0, k, 1]:.0f}" fill="#fff" stroke="#0b7a5c" '
        f'stroke-width="2">{_animate("cx", points[:, k, 0])}'
        f"{_animate('cy', points[:, k, 1])}</circle>"
        for k in range(RODS + 1)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 320" font-family="system-ui,sans-serif">'
        '<rect width="520" height="320" fill="#fff"/>'
        f'<path d="M{CENTER[0] - 40} {CENTER[1]}h80" stroke="#888" stroke-width="3"/>'
        f'<polyline fill="none" stroke="#c98a1b" stroke-width="2" opacity=".6">{_along(trails)}</polyline>'
        '<polyline fill="none" stroke="#0b7a5c" stroke-width="5" stroke-linecap="round" '
        f'stroke-linejoin="round" points="{_line(points[0])}">{_along(list(points))}</polyline>{dots}'
        f'<text x="12" y="308" font-size="12" fill="#444">{RODS} rods, {SECONDS:g} s; the energy drifts by '
        f"{drift:.0e} of its scale</text></svg>\n"
    )


def _animate(name: str, values: np.ndarray[Any, Any]) -> str:
    text = ";".join(f"{x:.0f}" for x in values)
    return f'<animate attributeName="{name}" dur="{SECONDS:g}s" repeatCount="indefinite" values="{text}"/>'


def _along(lines: list[np.ndarray[Any, Any]]) -> str:
    text = ";".join(_line(line) for line in lines)
    return f'<animate attributeName="points" dur="{SECONDS:g}s" repeatCount="indefinite" values="{text}"/>'


def _line(points: np.ndarray[Any, Any]) -> str:
    return " ".join(f"{x:.0f},{y:.0f}" for x, y in points)


if __name__ == "__main__":
    frames, drift = simulate(drevo.robots.rod_chain(RODS))
    target = Path(__file__).parent / "chain.svg"
    target.write_text(picture(joints(frames), drift), encoding="utf-8")
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB, {len(frames)} frames, drift {drift:.1e}")
