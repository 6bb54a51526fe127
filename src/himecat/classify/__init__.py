"""From documents to paths: flat classifiers at the inner nodes, walked top-down."""

from himecat.classify.assignments import Assignments, assign, node_probabilities
from himecat.classify.logistic import MeanLogistic
from himecat.classify.protocol import FlatClassifier, TrainingSet
from himecat.classify.registry import classifier_class, register_classifier, restore_classifier
from himecat.classify.topdown import TopDownClassifier, fit_top_down, training_set

__all__ = [
    "Assignments",
    "FlatClassifier",
    "MeanLogistic",
    "TopDownClassifier",
    "TrainingSet",
    "assign",
    "classifier_class",
    "fit_top_down",
    "node_probabilities",
    "register_classifier",
    "restore_classifier",
    "training_set",
]
