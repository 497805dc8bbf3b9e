"""`python -m bimichi.cli` is `bimichi`."""

from bimichi.cli import main

if __name__ == "__main__":
    main()
