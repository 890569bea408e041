"""Tendons as MJCF: their sites, what acts along them, and what couples their lengths."""

from __future__ import annotations

from collections.abc import Iterator
from math import nextafter

from ..contact import SOLIMP
from ..description import Model, Tendon, TendonSegment
from ..rotations import IDENTITY_POSE, pose_of_quaternion
from ..values import BOUND_THAT_IS_NONE
from .mjcf.equality import shifted
from .mjcf.posture import Posture
from .mjcf.tendons import AUTOMATIC
from .mjcf_contact import softness_of, unless
from .writing import TextValue, element


class TendonLines:
    """<tendon> and <equality><tendon> of a model; adds the sites by which they run to those of the links."""

    def __init__(self, model: Model, sites: dict[str, list[str]], stands: dict[str, tuple[float, ...]]) -> None:
        """stands: q of joints as the file stands, where it is not neutral."""
        self.sites, self.count = sites, 0
        free = {
            joint.child: pose_of_quaternion(stands[joint.name]) if joint.name in stands else IDENTITY_POSE
            for joint in model.joints
            if joint.kind == "free"
        }
        self.posture = Posture(model, {name: q[0] for name, q in stands.items() if len(q) == 1}, free)
        self.lines = [self._tendon(tendon) for tendon in model.tendons]
        tendons = {tendon.name: tendon for tendon in model.tendons}
        self.equalities = []
        for c in model.tendon_couplings:
            start = self.posture.length(tendons[c.driver]) if c.driver else None
            own = tendons[c.tendon]
            polynomial = shifted(c.coefficients, -own.offset - self.posture.length(own), -start if start else None)
            polynomial = (*polynomial, 0.0, 0.0, 0.0, 0.0)[:5]
            self.equalities.append(
                element(
                    "tendon",
                    tendon1=c.tendon,
                    tendon2=c.driver or None,
                    polycoef=polynomial,
                    **softness_of(c.solref, c.solimp),
                )
            )

    def _tendon(self, tendon: Tendon) -> list[str]:
        steps = [element("joint", joint=end.joint, coef=end.coefficient) for end in tendon.joints]
        steps += self._path(tendon.segments)
        low, high = (x - tendon.offset for x in tendon.rest)
        acts: dict[str, TextValue | None] = {
            "stiffness": tendon.stiffness or None,
            "springlength": (nextafter(low, 0.0) if low == AUTOMATIC else low, high) if tendon.stiffness else None,
            "damping": (tendon.damping, tendon.quadratic) if tendon.quadratic else tendon.damping or None,
            "frictionloss": tendon.friction or None,
            "margin": tendon.limit_margin or None,
            "solimplimit": unless(tendon.limit_solimp, SOLIMP),
            **softness_of(tendon.friction_solref, tendon.friction_solimp, "friction"),
        }
        kind = "fixed" if tendon.joints else "spatial"
        return element(kind, *steps, name=tendon.name, **acts, **self._limits(tendon))

    def _limits(self, tendon: Tendon) -> dict[str, TextValue | None]:
        if tendon.lower is None and tendon.upper is None:
            return {}
        low = -BOUND_THAT_IS_NONE if tendon.lower is None else tendon.lower - tendon.offset
        high = BOUND_THAT_IS_NONE if tendon.upper is None else tendon.upper - tendon.offset
        weight = self.posture.of_tendon(tendon)
        direct = (-tendon.limit_stiffness * weight, -tendon.limit_damping * weight)
        return {"range": (low, high), "solreflimit": tendon.limit_solref or direct}

    def _path(self, segments: tuple[TendonSegment, ...]) -> Iterator[list[str]]:
        """Sites one after the other; a pulley where a branch begins anew."""
        end = None
        for x in segments:
            if end != (x.link_a, x.point_a, x.share):
                if end is not None or x.share != 1.0:
                    yield element("pulley", divisor=1.0 / x.share)
                yield self._site(x.link_a, x.point_a)
            yield self._site(x.link_b, x.point_b)
            end = (x.link_b, x.point_b, x.share)

    def _site(self, link: str, point: tuple[float, float, float]) -> list[str]:
        name = f"tendon_site_{self.count}"
        self.count += 1
        self.sites[link] += element("site", name=name, pos=point)
        return element("site", site=name)
