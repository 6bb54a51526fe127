"""The embedded sample corpus: made-up letters to a town's service desk."""

from himecat.samples.files import write_sample
from himecat.samples.generator import METADATA, sample_documents, sample_split, sample_taxonomy

__all__ = ["METADATA", "sample_documents", "sample_split", "sample_taxonomy", "write_sample"]
