"""Imitations of real APIs: one module each, a class Imitation, see base.py."""

import importlib
import pkgutil

from api import Api

NAMES = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "base")


def load(scenario):
    """The API that a scenario plays."""
    if "upstream" in scenario.spec:
        return importlib.import_module("relay").Relay(scenario)
    name = scenario.spec.get("imitate")
    if name is None:
        return Api(scenario)
    module = name.replace("-", "_")
    if module not in NAMES:
        raise ValueError("no imitation of %r; one of %s" % (name, ", ".join(NAMES)))
    return importlib.import_module("imitations." + module).Imitation(scenario)
