"""A mujoco.MjModel, or an MjSpec, as the MJCF elements that say the same; MuJoCo itself is not imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...io.files import Files
from ...io.xml import Element
from ..contact import JOINT_SENSORS, LINK_SENSORS
from ..draft import Draft
from . import mjcf

SITE_OBJECT = 6  # what an equality holds, by the number of its kind
WRAPS = ("none", "joint", "pulley", "site", "geom")  # spheres and cylinders are all geoms
WHOLE_NUMBER_FIELDS = ("contype", "conaffinity", "condim", "priority")
TOUCHING_FIELDS = ("friction", "solref", "solimp", "margin", "gap", "solmix")
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
PULLED = {"joint": "joint", "jointinparent": "joint", "tendon": "tendon"}  # by actuators
RENAMED = {"jointactfrc": "jointactuatorfrc", "tendonactfrc": "tendonactuatorfrc", "geomdist": "distance"}
RENAMED |= {"geomnormal": "normal", "geomfromto": "fromto"}  # sensors in MJCF


def draft_of(source: Any, files: Files | None = None) -> Draft:
    """The draft of a robot from a MuJoCo model, as from its MJCF file."""
    model = source if hasattr(source, "body_parentid") else source.compile()
    hulls = bool(files and files.hulls)
    root = _element(model, hulls)
    if hulls:
        touching = {
            k for k, *bits in zip(model.geom_dataid, model.geom_contype, model.geom_conaffinity) if any(bits)
        }
        root.children.append(
            Element("asset", {}, 0, [_mesh(model, k) for k in range(model.nmesh) if k in touching])
        )
    return mjcf.draft_of(root, files=files)


def _element(model: Any, hulls: bool) -> Element:
    """<mujoco> with the numbers of the model, every digit of them; hulls: meshes are named, for theirs."""
    root = Element("mujoco", {"model": _name(model, 0) or "mujoco"}, 0)
    settings = {"angle": "radian", "inertiafromgeom": "false", "autolimits": "false"}
    option = Element(
        "option", {key: _text(getattr(model.opt, key)) for key in ("gravity", "density", "viscosity", "wind")}, 0
    )
    off, on = (_bits(model, f"{x}Bit", getattr(model.opt, f"{x.lower()}flags")) for x in ("Disable", "Enable"))
    flags = dict.fromkeys(off, "disable") | dict.fromkeys(on, "enable")
    option.children = [Element("flag", flags, 0)]
    option.attributes |= {
        "timestep": _text(model.opt.timestep),
        "impratio": _text(model.opt.impratio),
        "integrator": INTEGRATORS[model.opt.integrator],
        "cone": _word(model, "Cone", model.opt.cone),
        "actuatorgroupdisable": " ".join(str(k) for k in range(31) if int(model.opt.disableactuator) >> k & 1),
        "noslip_iterations": str(int(model.opt.noslip_iterations)),
        **{
            key: _text(getattr(model.opt, key))
            for key in ("o_margin", "o_solref", "o_solimp", "o_friction", "noslip_tolerance")
        },
    }
    world = Element("worldbody", {}, 0, [*_sites(model, 0), *_geoms(model, 0, hulls)])
    root.children = [Element("compiler", settings, 0), option, world, *_sections(model)]
    bodies = [world]
    for i in range(1, model.nbody):
        bodies.append(_body(model, i, hulls))
        bodies[model.body_parentid[i]].children.append(bodies[i])
    return root


def _body(model: Any, i: int, hulls: bool) -> Element:
    place = {"pos": _text(model.body_pos[i]), "quat": _text(model.body_quat[i])}
    body = Element("body", {"name": _named(model, "body", i), **place}, 0)
    body.attributes["gravcomp"] = _text(model.body_gravcomp[i])
    body.attributes["mocap"] = _truth(model.body_mocapid[i] >= 0)
    if model.body_mass[i] > 0.0 or model.body_inertia[i].any():
        inertial = {
            "mass": _text(model.body_mass[i]),
            "pos": _text(model.body_ipos[i]),
            "quat": _text(model.body_iquat[i]),
            "diaginertia": _text(model.body_inertia[i]),
        }
        body.children.append(Element("inertial", inertial, 0))
    first, count = model.body_jntadr[i], model.body_jntnum[i]
    body.children += [_joint(model, j) for j in range(first, first + count)]
    body.children += _sites(model, i)
    body.children += _geoms(model, i, hulls)
    return body


def _joint(model: Any, j: int) -> Element:
    kind, dof = _word(model, "Joint", model.jnt_type[j]), model.jnt_dofadr[j]
    joint = {"name": _named(model, "joint", j), "type": kind}
    joint |= {"pos": _text(model.jnt_pos[j]), "axis": _text(model.jnt_axis[j]), "range": _text(model.jnt_range[j])}
    joint |= {"limited": _truth(model.jnt_limited[j]), "actuatorfrclimited": _truth(model.jnt_actfrclimited[j])}
    joint |= {"actuatorfrcrange": _text(model.jnt_actfrcrange[j])}
    joint |= {"stiffness": _powers(model, "jnt_stiffness", j), "damping": _powers(model, "dof_damping", dof)}
    joint |= {key: _text(getattr(model, f"dof_{key}")[dof]) for key in ("armature", "frictionloss")}
    joint |= {"solreflimit": _text(model.jnt_solref[j]), "solimplimit": _text(model.jnt_solimp[j])}
    joint |= {"solreffriction": _text(model.dof_solref[dof]), "solimpfriction": _text(model.dof_solimp[dof])}
    joint |= {"margin": _text(model.jnt_margin[j]), **_newer(model, {"springyield": "jnt_springyield"}, j)}
    joint["actuatorgravcomp"] = _truth(model.jnt_actgravcomp[j])
    if kind in ("slide", "hinge"):
        joint["ref"] = _text(model.qpos0[model.jnt_qposadr[j]])
        joint["springref"] = _text(model.qpos_spring[model.jnt_qposadr[j]])
    return Element("joint", joint, 0)


def _sites(model: Any, i: int) -> list[Element]:
    """The sites of a body, to which loops, tendons and sensors may refer."""
    return [
        Element(
            "site",
            {"name": _named(model, "site", k), "type": _word(model, "Geom", model.site_type[k])}
            | {key: _text(getattr(model, f"site_{key}")[k]) for key in ("pos", "quat", "size")},
            0,
        )
        for k in np.flatnonzero(model.site_bodyid == i).tolist()
    ]


def _geom(model: Any, g: int, hulls: bool) -> Element:
    geom = {"type": _word(model, "Geom", model.geom_type[g]), "size": _text(model.geom_size[g])}
    geom |= {"pos": _text(model.geom_pos[g]), "quat": _text(model.geom_quat[g])}
    geom |= {key: str(int(getattr(model, f"geom_{key}")[g])) for key in WHOLE_NUMBER_FIELDS}
    geom |= {key: _text(getattr(model, f"geom_{key}")[g]) for key in TOUCHING_FIELDS}
    geom |= _newer(model, {"adhesion": "geom_adhesion", "surfacevel": "geom_surfacevel"}, g)
    drag = model.geom_fluid.reshape(model.ngeom, -1)[g]
    geom |= {"fluidshape": "ellipsoid", "fluidcoef": _text(drag[1:6])} if drag[0] > 0.0 else {}
    named = _name(model, model.name_geomadr[g]) or g in (*model.pair_geom1, *model.pair_geom2)
    geom |= {"name": _named(model, "geom", g)} if named else {}
    assets = ("hfield", "mesh") if hulls else ("hfield",)
    geom |= {geom["type"]: str(model.geom_dataid[g])} if geom["type"] in assets else {}
    return Element("geom", geom, 0)


def _geoms(model: Any, i: int, hulls: bool) -> list[Element]:
    """The geoms of a body."""
    first, count = model.body_geomadr[i], model.body_geomnum[i]
    return [_geom(model, g, hulls) for g in range(first, first + count)]


def _pair(model: Any, i: int) -> Element:
    """An explicit pair."""
    given = {f"geom{k}": _named(model, "geom", getattr(model, f"pair_geom{k}")[i]) for k in (1, 2)}
    given |= {"condim": str(int(model.pair_dim[i]))}
    for key in ("friction", "solref", "solimp", "margin", "gap", "solreffriction"):
        given[key] = _text(getattr(model, f"pair_{key}")[i])
    return Element("pair", given, 0)


def _field(model: Any, k: int) -> Element:
    """The asset of a height field, named by its number."""
    given = {"name": str(k), "size": _text(model.hfield_size[k]), "content_type": mjcf.touching.COMPILED}
    given |= {key: str(getattr(model, f"hfield_{key}")[k]) for key in ("nrow", "ncol")}
    first = model.hfield_adr[k]
    given["elevation"] = _text(model.hfield_data[first : first + model.hfield_nrow[k] * model.hfield_ncol[k]])
    return Element("hfield", given, 0)


def _mesh(model: Any, k: int) -> Element:
    """The asset of a mesh, named by its number: its points stand on its principal axes."""
    given = {"name": str(k), "inertia": "convex"}
    for key, kind in (("vertex", "vert"), ("face", "face")):
        first = getattr(model, f"mesh_{kind}adr")[k]
        numbers = getattr(model, f"mesh_{kind}")[first : first + getattr(model, f"mesh_{kind}num")[k]]
        given[key] = " ".join(map(repr, numbers.ravel().tolist()))
    return Element("mesh", given, 0)


def _sections(model: Any) -> Iterable[Element]:
    """The sections of what acts beside the bodies, as far as it is told apart from what does not."""
    equality, tendon, actuator = (Element(tag, {}, 0) for tag in ("equality", "tendon", "actuator"))
    equality.children += [_equality(model, i) for i in range(model.neq)]
    tendon.children += [_tendon(model, i) for i in range(model.ntendon)]
    actuator.children += [_actuator(model, i) for i in range(getattr(model, "nactuator", model.nu))]
    sensor = Element("sensor", {}, 0, [_sensor(model, i) for i in range(model.nsensor)])
    contact = Element("contact", {}, 0)
    for pair in (int(x) for x in model.exclude_signature):
        ends = zip(("body1", "body2"), (pair >> 16, pair & 0xFFFF))
        contact.children.append(Element("exclude", {end: _named(model, "body", k) for end, k in ends}, 0))
    contact.children += [_pair(model, i) for i in range(model.npair)]
    assets = Element("asset", {}, 0, [_field(model, k) for k in range(model.nhfield)])
    keyframe = Element("keyframe", {}, 0)
    for name, q in zip(model.name_keyadr, model.key_qpos):
        keyframe.children.append(Element("key", {"name": _name(model, name), "qpos": _text(q)}, 0))
    return (equality, tendon, actuator, sensor, contact, assets, keyframe)


def _actuator(model: Any, i: int) -> Element:
    """An actuator of any kind as <general>; one at what is not read has dynamics of a user's own."""
    given = {"name": _name(model, model.name_actuatoradr[i])}
    for key in ("dyn", "gain", "bias"):
        given[f"{key}type"] = _word(model, key.title(), getattr(model, f"actuator_{key}type")[i])
    for key in ("gear", "gainprm", "biasprm", "dynprm", "lengthrange", "actrange", "forcerange"):
        given[key] = _text(getattr(model, f"actuator_{key}")[i])
    for key in ("actlimited", "actearly", "forcelimited"):
        given[key] = _truth(getattr(model, f"actuator_{key}")[i])
    given |= _newer(model, {x: f"actuator_{x}" for x in ("armature", "damping", "delay")}, i)
    inputs = _bits(model, "CtrlInput", model.actuator_ctrlspec[i]) if hasattr(model, "actuator_ctrlspec") else []
    given |= {"input": " ".join(inputs)} if inputs else {}
    first = getattr(model, "actuator_ctrladr", range(model.nu))[i]
    for k, x in enumerate(inputs if given["gaintype"] == "pid" else ["pos"], first):
        key = "ctrl" if x == "pos" else x
        given |= {f"{key}range": _text(model.actuator_ctrlrange[k])} if model.actuator_ctrllimited[k] else {}
    given["ctrllimited"] = _truth("ctrlrange" in given)
    pulled = PULLED.get(_word(model, "Trn", model.actuator_trntype[i]))
    if pulled is None or model.actuator_plugin[i] >= 0:
        return Element("general", given | {"dyntype": "user"}, 0)
    given |= {pulled: _named(model, pulled, model.actuator_trnid[i][0]), "actdim": str(model.actuator_actnum[i])}
    return Element("general", given, 0)


def _sensor(model: Any, i: int) -> Element:
    """A sensor with what it is at; of what is not read only its name."""
    kind = _word(model, "Sensor", model.sensor_type[i])
    kind, at = RENAMED.get(kind, kind), _word(model, "Obj", model.sensor_objtype[i])
    given = {"name": _name(model, model.name_sensoradr[i])}
    if kind in (*JOINT_SENSORS, *LINK_SENSORS) and at in ("joint", "site", "body", "xbody"):
        name = _named(model, at.removeprefix("x"), model.sensor_objid[i])
        given |= {"objtype": at, "objname": name} if kind.startswith("frame") else {at: name}
        given |= {"reftype": "body"} if model.sensor_refid[i] >= 0 else {}
        given |= {"data": "more"} if kind == "rangefinder" and model.sensor_dim[i] > 1 else {}
        given |= {"cutoff": _text(model.sensor_cutoff[i])}
        given |= _newer(model, {x: f"sensor_{x}" for x in ("delay", "interval")}, i)
    return Element(kind, given, 0)


def _tendon(model: Any, i: int) -> Element:
    """The element of a tendon: what it joins, and its numbers; of joints and sites by their names."""
    first = model.tendon_adr[i]
    steps = []
    for k in range(first, first + model.tendon_num[i]):
        kind, size = WRAPS[min(model.wrap_type[k], len(WRAPS) - 1)], _text(model.wrap_prm[k])
        if kind == "pulley":
            steps.append(Element(kind, {"divisor": size}, 0))
        elif kind == "geom":
            side = round(float(model.wrap_prm[k]))
            aside = {"sidesite": _named(model, "site", side)} if side >= 0 else {}
            steps.append(Element(kind, {"geom": _named(model, "geom", model.wrap_objid[k]), **aside}, 0))
        else:
            coefficient = {"coef": size} if kind == "joint" else {}
            steps.append(Element(kind, {kind: _named(model, kind, model.wrap_objid[k]), **coefficient}, 0))
    given = {
        key: _text(getattr(model, f"tendon_{key}")[i]) for key in ("armature", "frictionloss", "range", "margin")
    }
    given |= {key: _powers(model, f"tendon_{key}", i) for key in ("stiffness", "damping")}
    given |= _newer(model, {"springyield": "tendon_springyield"}, i)
    given["springlength"] = _text(model.tendon_lengthspring[i])
    for effect, end in (("limit", "lim"), ("friction", "fri")):
        given |= {
            f"{key}{effect}": _text(getattr(model, f"tendon_{key}_{end}")[i]) for key in ("solref", "solimp")
        }
    given |= {"name": _named(model, "tendon", i), "limited": _truth(model.tendon_limited[i])}
    given |= {"actuatorfrclimited": _truth(model.tendon_actfrclimited[i])}
    given |= {"actuatorfrcrange": _text(model.tendon_actfrcrange[i])}
    return Element("fixed" if steps[0].tag == "joint" else "spatial", given, 0, steps)


def _powers(model: Any, field: str, i: int) -> str:
    """A stiffness or a damping, with its powers where MuJoCo has them."""
    return _text([getattr(model, field)[i], *np.ravel(getattr(model, f"{field}poly", np.zeros((i + 1, 0)))[i])])


def _newer(model: Any, fields: dict[str, str], i: int) -> dict[str, str]:
    """Attributes of fields that not every MuJoCo has."""
    return {name: _text(getattr(model, field)[i]) for name, field in fields.items() if hasattr(model, field)}


def _equality(model: Any, i: int) -> Element:
    """The element of an equality: what it holds, by the names of bodies, joints or sites, with its numbers."""
    tag, data = _word(model, "Eq", model.eq_type[i]), model.eq_data[i]
    given = {"name": _name(model, model.name_eqadr[i]), "active": _truth(model.eq_active0[i])}
    given |= {"solref": _text(model.eq_solref[i]), "solimp": _text(model.eq_solimp[i])}
    if tag == "tendon":
        ends = enumerate((model.eq_obj1id[i], model.eq_obj2id[i]), 1)
        given |= {f"tendon{end}": _named(model, "tendon", k) for end, k in ends if k >= 0}
        return Element(tag, given | {"polycoef": _text(data[:5])}, 0)
    kind = "joint" if tag == "joint" else "site" if model.eq_objtype[i] == SITE_OBJECT else "body"
    for end, k in (
        ((1, model.eq_obj1id[i]), (2, model.eq_obj2id[i])) if tag in ("connect", "weld", "joint") else ()
    ):
        given |= {f"{kind}{end}": _named(model, kind, k)} if k >= 0 else {}
    if tag == "joint":
        given["polycoef"] = _text(data[:5])
    elif kind == "body":
        given |= {"anchor": _text(data[:3])} | ({"relpose": _text(data[3:10])} if tag == "weld" else {})
    given |= {"torquescale": _text(data[10])} if tag == "weld" else {}
    return Element(tag, given, 0)


def _bits(model: Any, kind: str, number: int) -> list[str]:
    """The bits of a number, by the names in MJCF of an enumeration of MuJoCo's."""
    members = getattr(_module(model), f"mjt{kind}").__members__
    return [x.partition("_")[2].lower() for x, bit in members.items() if "_" in x and int(number) & int(bit)]


def _word(model: Any, kind: str, number: int) -> str:
    """The name in MJCF of a number of an enumeration of MuJoCo's."""
    word: str = getattr(_module(model), f"mjt{kind}")(int(number)).name
    return word.partition("_")[2].lower()


def _module(model: Any) -> Any:
    """MuJoCo, which made the model."""
    return sys.modules[type(model).__module__.partition(".")[0]]


def _truth(switch: Any) -> str:
    """A switch as an attribute of MJCF."""
    return "true" if switch else "false"


def _named(model: Any, kind: str, i: int) -> str:
    """The name of element i of a kind, or one that we make up."""
    given_name = _name(model, getattr(model, {"joint": "name_jntadr"}.get(kind, f"name_{kind}adr"))[i])
    return given_name or f"{kind} {i}"


def _name(model: Any, address: int) -> str:
    names: bytes = model.names
    return names[address : names.index(b"\0", address)].decode()


def _text(numbers: Any) -> str:
    """Numbers as an attribute of MJCF."""
    return " ".join(repr(float(x)) for x in np.ravel(numbers))
