"""A game at the terminal: standard input reaches the program.

Try it:  rillbox run --timeout 5m examples/guess.py
"""

import random

secret = random.randint(1, 100)
guess = 0
tries = 0
while guess != secret:
    try:
        guess = int(input("A number from 1 to 100: "))
    except ValueError:
        print("That is no number.")
        continue
    except EOFError:
        print(f"It was {secret}.")
        break
    tries += 1
    if guess == secret:
        print(f"{tries} tries.")
    else:
        print("More." if guess < secret else "Less.")
