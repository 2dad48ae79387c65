"""Which operator of a graph the compiler refuses: the plugin's message names no line of the user's, so prefixes are tried."""
import time

from .split import part_of

REFUSED = "the compiler refused the program"  # what the core says of the plugin's verdict
LIMIT = 60.0  # seconds; a large graph that compiles slowly is not compiled again and again


def find(gm, refuses, limit=LIMIT):
    """The first node with which the graph is refused, or None.

    refuses: graph module of a prefix of |gm|'s operators -> whether the compiler refuses it.
    """
    nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
    deadline = time.monotonic() + limit

    def refused(count):
        some = set(nodes[:count])
        leaves = {n for n in some if not n.users or any(u not in some for u in n.users)}
        return refuses(part_of(gm, nodes[:count], leaves))

    if not nodes or refused(0):
        return None  # no operator's fault: a flag, a device
    low, high = 0, len(nodes)  # accepted, refused
    while high - low > 1:
        if time.monotonic() > deadline:
            return None
        middle = (low + high) // 2
        low, high = (low, middle) if refused(middle) else (middle, high)
    return nodes[high - 1]


def located(error, gm, lower):
    """|error|, with the operator and the user's line when they can be found. lower: graph module -> Lowering."""
    from .lowering import users_line

    def refuses(prefix):
        try:
            lower(prefix).compile()
            return False
        except RuntimeError as e:
            return REFUSED in str(e)
        except Exception:  # noqa: BLE001 - this prefix says nothing
            return False

    node = find(gm, refuses)
    if node is None:
        return error
    line = users_line(node)
    return RuntimeError(f"torch.compile(backend='tpu'): {node.target}" + (f"\nin the user's code:\n{line}" if line else "") + f"\n{error}")

