"""`python -m boca` is the command `boca`."""

from boca.cli import main

if __name__ == "__main__":
    main()
