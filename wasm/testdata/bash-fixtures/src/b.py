import os
# TODO tests
print("hi")
