"""``torch.tpu.random``: the functions of ``torch.tpu`` about generators, where ``torch.cuda`` has them."""

from .tpu import (  # noqa: F401
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
