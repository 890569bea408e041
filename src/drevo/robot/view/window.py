"""A window in the browser: the robot, a slider for every joint, panels that follow, motions with their plots.

A server of viser that only this machine reaches, and only with the token that stands in the address.
"""

from __future__ import annotations

import http
import io
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from html import escape
from pathlib import Path
from threading import Event, Lock, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import DrevoError, InputError, warn_caller
from ...io.files import saving
from ...io.given import Array, positive
from ...io.packages import package
from ...mechanics.configuration import bounds, neutral, state
from ...model.draft import expect_robot
from ..compiling import compile
from . import panels
from .figure import LAYERS, SHOWN_LAYERS, SceneRobot, quaternion
from .handle import LinkHandle
from .mesh import MeshFiles, ball
from .panels import LinkSections, Ribbons, checked_tables

LOOPBACK = "127.0.0.1"
_STARTING = Lock()


def opened(port: int, label: str) -> tuple[Any, str]:
    """A server, and the address with its token. port: 0 is any that is free. InputError where it is taken."""
    viser = package("viser", "a window")
    taken = f"view: port {port} is in use or not allowed; give another, or 0 for any that is free"
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InputError(f"view: port must be a whole number below 65536, not {port!r:.40}")
    with socket.socket() as probe:  # viser would go on to the next one without a word
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            raise InputError(taken) from None
        port = probe.getsockname()[1]
    token = secrets.token_urlsafe(16)
    with _STARTING, _gated(token), redirect_stdout(io.StringIO()):  # it would print an address without the token
        server = viser.ViserServer(host=LOOPBACK, port=port, label=label, verbose=False)
    if server.get_port() != port:
        server.stop()
        raise InputError(taken)
    return server, f"http://{LOOPBACK}:{port}/{token}"


@contextmanager
def _gated(token: str) -> Iterator[None]:
    """While a server starts: it answers paths below the token only, pages and sockets alike."""
    asyncio = package("websockets.asyncio.server", "a window")
    serve = asyncio.serve

    def guarded(*args: Any, process_request: Callable[..., Any], **more: Any) -> Any:
        return serve(*args, process_request=behind(token, process_request), **more)

    asyncio.serve = guarded
    try:
        yield
    finally:
        asyncio.serve = serve


def behind(token: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """An answer to requests that names the token first, and refuses others."""

    def process(connection: Any, request: Any) -> Any:
        given, _, rest = request.path.removeprefix("/").partition("?")[0].partition("/")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "open the address that Drevo printed\n")
        request.path = f"/{rest}"
        return answer(connection, request)

    return process


FRAME_RATE = 30.0  # frames a second of a motion
CURVES = 400  # points of a plot
WINDOW_COLOURS = ("#0b7a75", "#b3452c", "#c98a1b", "#3b6fb6", "#7a4fa3", "#4d8b31", "#a83e6f", "#6b6f76")
CONNECTING = 20.0  # s that a picture waits for a browser


class Window:
    """A robot in the browser of this machine; `address` opens it, `close` ends it.

    Set `q` to move the robot; `play` shows a motion, `picture` what the browser shows.
    """

    def __init__(
        self, robot: Any, q: ArrayLike | None = None, port: int = 0, loads: Sequence[LinkSections] = ()
    ) -> None:
        expect_robot(robot, "view")
        self.robot, self.model = robot, robot.model
        start = neutral(self.model) if q is None else state(self.model, "view", q=q)[0]
        if start.shape != (self.model.nq,):
            raise InputError(f"view: q must be one configuration, ({self.model.nq},), not {start.shape}")
        low, high = bounds(self.model)
        self._q: Array = start if q is not None else np.clip(start, low, high)
        self._lock, self._stop, self._quiet = RLock(), Event(), False
        self.dynamic, self.note = self._dynamics()
        self.loads = checked_tables(self.model, loads)
        self.server, self.address = opened(port, f"Drevo: {self.model.name}")
        self._build(low, high)
        self._show()

    def __repr__(self) -> str:
        return f"<Window on {self.model.name!r}: {self.address}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{escape(self.address)}" style="width:100%;height:36rem;border:0"></iframe>'

    @property
    def q(self) -> Array:
        """The configuration that the window shows, (nq,)."""
        return self._q.copy()

    @q.setter
    def q(self, q: ArrayLike) -> None:
        (found,) = state(self.model, "view", q=q)
        if found.shape != self._q.shape:
            raise InputError(f"view: q must be one configuration, {self._q.shape}, not {found.shape}")
        with self._lock:
            self._q = found.copy()
            self._show()

    def wait(self) -> None:
        """Until `close`, or an interruption."""
        try:
            while not self._stop.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Ends the server; the page in the browser stays as it is."""
        self._stop.set()
        self.server.stop()

    # -- motions ----------------------------------------------------------------------------------------------

    def play(self, motion: Any, speed: float = 1.0) -> None:
        """Shows a motion, such as `robot.simulate` or a walk gives, with plots of its energies and efforts.

        motion: has t (n,), q (n, nq), and may have v and tau (n, nv). Returns when it has been shown.
        """
        t, q, v, tau = (_series(motion, name) for name in ("t", "q", "v", "tau"))
        if t is None or q is None or t.ndim != 1 or q.shape != (len(t), self.model.nq) or len(t) < 2:
            raise InputError("view: a motion has t (n,) and q (n, nq) of one robot, as robot.simulate gives it")
        rate = positive("view: speed", speed)
        t = t - t[0]
        self._plot(t, q, v, tau)
        start = time.monotonic()
        while not self._stop.is_set():
            now = (time.monotonic() - start) * rate
            k = min(int(np.searchsorted(t, now, side="right")) - 1, len(t) - 1)
            self.q = q[max(k, 0)]
            if now >= t[-1]:
                return
            time.sleep(1.0 / FRAME_RATE)

    def picture(self, path: str | Path | None = None, width: int = 1200, height: int = 800) -> Array:
        """The scene as an open browser shows it, (height, width, 3) of uint8; to a PNG with a path."""
        end = time.monotonic() + CONNECTING
        while not (clients := list(self.server.get_clients().values())):
            if time.monotonic() > end:
                raise InputError(f"view: no browser shows the window; open {self.address}")
            time.sleep(0.05)
        image: Array = clients[0].get_render(height, width, timeout=CONNECTING)
        if path is not None:
            with saving("a picture", path, (".png",)) as file:
                package("imageio", "a picture").imwrite(file, image)
        return image

    # -- what is shown ----------------------------------------------------------------------------------------

    def _dynamics(self) -> tuple[bool, str]:
        """True if there are dynamics, and the note to show where there are none, or open loops."""
        try:
            self.robot.mass_matrix(self._q)
        except DrevoError as error:
            return False, f"No dynamics here: {error}."
        loops = "The closed loops of this robot are open here: its links move as those of the tree."
        return True, loops if self.model.closed else ""

    def _build(self, low: Array, high: Array) -> None:
        server, meshes = self.server, MeshFiles(self.model)
        gravity = np.array(self.model.gravity)
        up = -gravity if gravity.any() else np.array([0.0, 0.0, 1.0])
        server.gui.configure_theme(show_share_button=False)  # which would open a way through the network
        server.scene.set_up_direction(tuple(up / np.linalg.norm(up)))
        self.scene = SceneRobot(server.scene, self.model, meshes, self.robot.poses(self._q))
        if missing := meshes.told():
            warn_caller(missing)
        server.scene.add_grid("/ground", infinite_grid=True, cell_size=_round(self.scene.size / 10),
                              section_size=_round(self.scene.size / 2))  # fmt: skip
        middle = np.mean([T[:3, 3] for T in self.scene.places.values()], axis=0)
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.position = tuple(middle + self.scene.size * np.array([0.9, -0.7, 0.5]))
        tabs = server.gui.add_tab_group()
        with tabs.add_tab("Joints"):
            self._sliders(low, high)
        with tabs.add_tab("Numbers"):
            self._panels()
        if self.dynamic and not self.model.closed:
            with tabs.add_tab("Motion"):
                self._motion()
        self.ribbons = None
        if self.dynamic and self.loads:
            with tabs.add_tab("Loads"):
                self.ribbons = Ribbons(server, self.scene, self.loads, self._locked_show)

    def _sliders(self, low: Array, high: Array) -> None:
        gui = self.server.gui
        again = gui.add_button_group("posture", ("neutral", "random"))
        again.on_click(lambda event: self._posture(event.target.value))
        for name in LAYERS:
            if nodes := self.scene.layers[name]:
                box = gui.add_checkbox(name, name in SHOWN_LAYERS)
                box.on_update(lambda event, nodes=nodes: _set_visible(nodes, event.target.value))
        self.sliders = []
        units = self.model.units_of("rad", "m", kind="q")
        for k, ((joint, index), unit) in enumerate(zip(self.model.freedoms("q"), units)):
            a, b, at = float(low[k]), float(high[k]), float(self._q[k])
            a, b = min(a, at), max(b, at, a + 1e-6)
            slider = gui.add_slider(f"{joint}{index}{unit and f', {unit}'}", a, b, (b - a) / 1000, at)
            slider.on_update(lambda event, k=k: self._slid(k, event.target.value))
            self.sliders.append(slider)
        self.handle = LinkHandle(self.server, self.robot, self.scene.size, self._dragged)

    def _panels(self) -> None:
        """Adds the panels: pose, manipulability, matrix, gravity and energies."""
        gui, names = self.server.gui, [link.name for link in self.model.links]
        if self.note:
            gui.add_html(f"<p>{escape(self.note)}</p>")
        self.link = gui.add_dropdown("pose of", names, initial_value=names[-1])
        self.link.on_update(lambda _: self._locked_show())
        self.pose = gui.add_html("")
        self.reach = self.server.scene.add_mesh_simple(
            "/manipulability", *ball(), color=(59, 111, 182), opacity=0.35, side="double", visible=False
        )
        box = gui.add_checkbox("manipulability ellipsoid", False)
        box.on_update(lambda event: _set_visible([self.reach], event.target.value))
        if self.dynamic:
            gui.add_markdown("**Mass matrix**, six decades, red where negative")
            self.heat = gui.add_image(panels.heat(np.eye(self.model.nv)), format="png")
            gui.add_markdown("**Gravity**, N m or N")
            self.gravity, self.most = gui.add_html(""), 0.0
            functions = [compile(self.robot, name) for name in ("inverse_dynamics", "mass_matrix", "gravity")]
            gui.add_markdown("**Operations**")
            gui.add_html(panels.counted(functions))

    def _motion(self) -> None:
        gui = self.server.gui
        self.seconds = gui.add_number("seconds", 3.0, min=0.1, max=60.0)
        button = gui.add_button("Let go")
        button.on_click(lambda _: Thread(target=self._let_go, daemon=True).start())
        gui.add_markdown(
            "From rest where it stands, without efforts, with what acts in the joints, past limits too."
        )
        self.plots: list[Any] = []

    def _let_go(self) -> None:
        try:
            self.play(self.robot.simulate(self._q, duration=float(self.seconds.value), dt=1e-3, every=10))
        except DrevoError as error:
            self.server.gui.add_html(f"<p>{escape(str(error))}</p>")  # in Markdown names would be code

    def _plot(self, t: Array, q: Array, v: Array | None, tau: Array | None) -> None:
        """Energies, or coordinates where there are no rates, and efforts where they are known."""
        if not hasattr(self, "plots"):
            return
        some = np.unique(np.linspace(0, len(t) - 1, CURVES).astype(int))
        for plot in self.plots:
            plot.remove()
        self.plots = []
        if self.dynamic and v is not None:
            T, V = self.robot.kinetic_energy(q[some], v[some]), self.robot.potential_energy(q[some])
            self.plots.append(self._curves("energies, J", t[some], [T, V, T + V], ["T", "V", "T + V"]))
        joints = ["".join(x) for x in self.model.freedoms("v")]
        if v is not None:
            self.plots.append(self._curves("rates, rad/s or m/s", t[some], list(v[some].T), joints))
        if tau is not None:
            self.plots.append(self._curves("efforts, N m or N", t[some], list(tau[some].T), joints))

    def _curves(self, title: str, t: Array, rows: Sequence[Array], names: Sequence[str]) -> Any:
        kinds = package("viser.uplot", "a window")
        series = [
            kinds.Series(label=x, stroke=WINDOW_COLOURS[k % len(WINDOW_COLOURS)], width=1.5)
            for k, x in enumerate(names)
        ]
        data = (t, *(np.ascontiguousarray(x) for x in rows))
        return self.server.gui.add_uplot(
            data,
            (kinds.Series(label="t, s"), *series),
            title=title,
            aspect=1.6,
            scales={"x": kinds.Scale(time=False)},
        )

    # -- what changes -----------------------------------------------------------------------------------------

    def _slid(self, k: int, value: float) -> None:
        with self._lock:
            if self._quiet or value == self._q[k]:
                return
            self._q[k] = value
            self._unit()
            self._show()

    def _dragged(self, q: Array) -> None:
        self.q = q

    def _unit(self) -> None:
        """Makes the quaternions of q unit."""
        for j, sq, _ in self.model.slices():
            if j.turns:
                part = self._q[sq.stop - 4 : sq.stop]
                size = float(np.linalg.norm(part))
                part[:] = part / size if size > 1e-9 else (0.0, 0.0, 0.0, 1.0)

    def _posture(self, which: str) -> None:
        self.q = self.robot.random() if which == "random" else neutral(self.model)

    def _locked_show(self) -> None:
        with self._lock:
            self._show()

    def _show(self) -> None:
        """Everything as it is at q."""
        q = self._q
        with self.server.atomic(), self._silent():
            self.scene.move(self.robot.poses(q))
            self.handle.stand(q.copy())
            for slider, y in zip(self.sliders, q):
                if slider.value != y:
                    slider.value = float(np.clip(y, slider.min, slider.max))
            link = self.link.value
            self.pose.content = panels.pose_table(self.scene.places[link])
            if self.model.nv:
                self._show_reach(link)
            if self.ribbons:
                still = np.zeros(self.model.nv)
                W = self.robot.joint_wrenches(q, still, still) if self.ribbons.on else np.zeros((0, 6))
                self.ribbons.show(dict(zip(self.robot.moving_links, W)), np.array(self.model.gravity))
            if self.dynamic:
                self.heat.image = panels.heat(self.robot.mass_matrix(q))
                g = self.robot.gravity(q)
                self.most = max(self.most, float(np.abs(g).max(initial=0.0)))
                names = ["".join(x) for x in self.model.freedoms("v")]
                self.gravity.content = panels.bar_table(names, g, self.most)

    def _show_reach(self, link: str) -> None:
        J = self.robot.jacobian(self._q, link=link)[:3]
        value, half, axes = panels.manipulability_ellipsoid(J)
        scale = 0.2 * self.scene.size / max(float(half.max()), 1e-9)
        self.reach.scale = tuple(np.maximum(half * scale, 1e-4 * self.scene.size))
        self.reach.wxyz, self.reach.position = quaternion(axes), self.scene.places[link][:3, 3]
        self.pose.content += (
            f"<p style='font-size:.8rem'>manipulability sqrt det J J<sup>T</sup> = {value:.4g}</p>"
        )

    @contextmanager
    def _silent(self) -> Any:
        """While sliders are set from here, what they say is no news."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False


def _set_visible(nodes: Sequence[Any], shown: bool) -> None:
    for node in nodes:
        node.visible = shown


def _series(motion: Any, name: str) -> Array | None:
    """A column of a table or of a walk."""
    if callable(series := getattr(motion, "series", None)):
        return np.asarray(series(name), float)
    values = getattr(motion, name, None)
    return None if values is None else np.asarray(values, float)


def _round(x: float) -> float:
    """1, 2 or 5 times a power of ten, near x."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * min((1, 2, 5, 10), key=lambda k: abs(k * power - x)))
