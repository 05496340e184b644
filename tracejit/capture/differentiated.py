# SPDX-License-Identifier: BSD-3-Clause
"""The captured arrays by which derivatives are taken: guards that they are not those which another name leads to.

dlgradient(loss, net.a) is the derivative by an array, by whatever name the loss reads it. A recording in which net.b is
another array lacks the part by net.b. So it does not apply once net.b is net.a (weights that are tied later), although
each array by itself is as it was. What the loss does not depend on, such as a target network behind stop_gradient, may
become the same array.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tracejit.capture.arrays import SeenArray
from tracejit.capture.guards import GuardList, Site
from tracejit.ir import Node, Value


class Differentiated:
    """The derivatives that a recording takes.

    Attributes:
        targets: what is differentiated.
        variables: inputs of the graph for the captured arrays by which it is.
    """

    __slots__ = ("targets", "variables")

    def __init__(self) -> None:
        self.targets: set[Value] = set()
        self.variables: set[Value] = set()

    def compare(self, fetched: Iterable[tuple[SeenArray, Site]], guards: GuardList) -> None:
        """Add the guards.

        Args:
            fetched: the captured arrays, with the variables that hold their elements.
            guards: to add to.
        """
        if not self.variables:
            return
        known = self._depended_on(next(iter(self.variables)).owner.graph.nodes)
        alike: dict[Any, list[tuple[SeenArray, Site]]] = {}
        for seen, site in fetched:
            if known is None or seen.value in known or seen.value in self.variables:
                alike.setdefault((seen.data.shape, seen.data.dtype), []).append((seen, site))
        for group in alike.values():
            first = next((entry for entry in group if entry[0].value in self.variables), None)
            others = [entry for entry in group if first is not None and entry[0].data is not first[0].data]
            if first is not None and others:
                _compare(first[1], [site for _, site in others], guards)

    def _depended_on(self, nodes: Sequence[Node]) -> set[Value] | None:
        """Return the values that a target depends on by nodes with derivatives; None where a target is none of these.

        Targets in the steps of a loop are values of its body.
        """
        made = {value for node in nodes for value in node.outputs}
        if any(target.node is not None and target not in made for target in self.targets):
            return None
        found = set(self.targets)
        for node in reversed(nodes):
            if node.op.vjp is not None and not found.isdisjoint(node.outputs):
                found.update(node.inputs)
        return found


def _compare(site: Site, others: Sequence[Site], guards: GuardList) -> None:
    variables = [site.variable, *[other.variable for other in others]]
    if len(others) == 1:
        shown, condition = f"another array than {others[0].name}", " is ".join(variables)
    else:
        idents = f"{{*map(id, ({', '.join(variables)}))}}"
        shown, condition = "an array of its own", f"len({idents}) != {len(variables)}"
    guards.add(site._replace(before=""), shown, condition, is_told=True)
