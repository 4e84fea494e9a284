# msgpack is binary, the others are pure Python; rich brings three more.
import attrs
import msgpack
from rich.text import Text


@attrs.frozen
class Point:
    x: int
    y: int


packed = msgpack.packb(attrs.asdict(Point(1, 2)))
print(Text.assemble("hello ", str(msgpack.unpackb(packed))).plain)
