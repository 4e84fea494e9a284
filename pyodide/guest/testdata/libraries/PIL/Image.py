from matplotlib.figure import picture


class Image:
    def __init__(self, size):
        self.size = size

    def resize(self, size):
        return Image(size)

    def _repr_png_(self):
        return picture(*self.size)

    def _repr_jpeg_(self):
        return b"\xff\xd8\xff"


def new(mode, size):
    return Image(size)
