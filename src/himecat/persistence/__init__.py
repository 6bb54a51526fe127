"""The model folder: what a model is in `model.json`, its numbers in `weights.safetensors`."""

from himecat.persistence.layout import require_keys
from himecat.persistence.reader import read_model
from himecat.persistence.writer import write_model

__all__ = ["read_model", "require_keys", "write_model"]
