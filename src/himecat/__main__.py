"""`python -m himecat`."""

from himecat.cli import main

if __name__ == "__main__":
    main()
