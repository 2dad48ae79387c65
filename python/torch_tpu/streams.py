"""``torch.tpu.streams``: the stream and event classes of ``torch.tpu``, where ``torch.cuda`` has them."""

from .tpu import Event, Stream, StreamContext  # noqa: F401
