import struct
import zlib


class Pair(tuple):
    def __mul__(self, factor):
        return Pair(side * factor for side in self)


class Axes:
    def __init__(self):
        self.lines = []

    def plot(self, values):
        self.lines.append(list(values))


class Figure:
    def __init__(self, figsize=(6.4, 4.8), dpi=100):
        self.size, self.dpi = Pair(figsize), dpi
        self.axes, self.lines = [], []

    def __repr__(self):
        width, height = self.size * self.dpi
        return f"<Figure size {width:g}x{height:g} with {len(self.axes)} Axes>"

    def add_subplot(self):
        self.axes.append(Axes())
        return self.axes[-1]

    def get_size_inches(self):
        return self.size

    def savefig(self, file, *, format, dpi, bbox_inches):
        assert format == "png" and bbox_inches == "tight"
        width, height = (round(side) for side in self.size * dpi)
        file.write(picture(width, height))


def picture(width, height):
    """A black PNG."""

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * width) * height)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks
