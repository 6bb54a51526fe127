"""The default method: a mixture over the leaves, linear classifiers, label prior and calibration."""
