def f(x):
    # TODO: faster
    return x + 1


def g():
    pass
