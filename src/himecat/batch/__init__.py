"""As many documents as there are: tables are placed anywhere, and files in parts that can be resumed."""

from himecat.batch.placer import Placer

__all__ = ["Placer"]
