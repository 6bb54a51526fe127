"""The published method, section by section; the default method has no part in it.

2.2 von Mises-Fisher distribution: `vmf`; 3.1 generative process: `pairs`; 3.2 joint representation learning:
`sampled_space`; 3.3 hierarchical data augmentation: `synthesis`; 3.4 hierarchical classifier training: `topdown`,
`kimcnn`; all of them one after the other: `fit`.
"""
