"""Systems to compare with, one file each.

Each reads the same corpus and the same labelled documents as the estimator, and gives one leaf per document.
"""

from himecat.baselines.encoder_logistic import encoder_logistic
from himecat.baselines.system import System, Task
from himecat.baselines.tfidf_svm import tfidf_svm

__all__ = ["System", "Task", "encoder_logistic", "tfidf_svm"]
